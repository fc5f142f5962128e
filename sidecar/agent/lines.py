"""Who works in which session of this process: one at a time, the others in the order in which they came."""

import asyncio
from collections import deque


class Lines:
    """One line for each session that is in use."""

    def __init__(self) -> None:
        self._working: dict[str, str] = {}
        self._waiting: dict[str, deque[tuple[str, asyncio.Future[None]]]] = {}

    def in_use_for(self, session_id: str) -> str | None:
        """What is being done in a session."""
        return self._working.get(session_id)

    async def take(self, session_id: str, work: str) -> None:
        """Waits for one's turn; to be followed by `give_back`. Does not pause where nobody is before."""
        if session_id not in self._working:
            self._working[session_id] = work
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._waiting.setdefault(session_id, deque())
        line.append((work, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # The turn came together with the order to leave.
                self.give_back(session_id)
            elif (work, turn) in line:
                line.remove((work, turn))
            raise

    def give_back(self, session_id: str) -> None:
        """Lets the next one in."""
        line = self._waiting.get(session_id, deque())
        while line:
            work, turn = line.popleft()
            if not turn.done():
                self._working[session_id] = work
                turn.set_result(None)
                return
        self._working.pop(session_id, None)
        self._waiting.pop(session_id, None)
