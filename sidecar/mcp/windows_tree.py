"""Ending a server with everything it started, on Windows: one Job Object for each server.

The job ends its processes when its last handle closes, so the system itself sees to it that none of them
outlives us, however we end.
"""

import ctypes
import subprocess
import sys
from collections.abc import Mapping
from ctypes import wintypes
from typing import Any

assert sys.platform == "win32"

_KILL_ON_JOB_CLOSE = 0x2000
_EXTENDED_LIMIT_INFORMATION = 9
_BASIC_ACCOUNTING_INFORMATION = 1
_SET_QUOTA_AND_TERMINATE = 0x0100 | 0x0001


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class _Accounting(ctypes.Structure):
    _fields_ = (
        ("TotalUserTime", ctypes.c_int64),
        ("TotalKernelTime", ctypes.c_int64),
        ("ThisPeriodTotalUserTime", ctypes.c_int64),
        ("ThisPeriodTotalKernelTime", ctypes.c_int64),
        ("TotalPageFaultCount", wintypes.DWORD),
        ("TotalProcesses", wintypes.DWORD),
        ("ActiveProcesses", wintypes.DWORD),
        ("TotalTerminatedProcesses", wintypes.DWORD),
    )


_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateJobObjectW.restype = wintypes.HANDLE
_kernel.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
_kernel.SetInformationJobObject.argtypes = (wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD)
_kernel.QueryInformationJobObject.argtypes = (
    wintypes.HANDLE,
    ctypes.c_int,
    ctypes.c_void_p,
    wintypes.DWORD,
    ctypes.c_void_p,
)
_kernel.OpenProcess.restype = wintypes.HANDLE
_kernel.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
_kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
_kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
_kernel.CloseHandle.argtypes = (wintypes.HANDLE,)


class ProcessTree:
    """One server process and its descendants."""

    spawn_options: Mapping[str, Any] = {
        "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    }
    environ: Mapping[str, str] = {}

    def __init__(self) -> None:
        self._job: int | None = None

    def prepare(self) -> None:
        """Call before the server is started; `release` must follow, also if it does not start."""
        self._job = _kernel.CreateJobObjectW(None, None)
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _KILL_ON_JOB_CLOSE
        _kernel.SetInformationJobObject(
            self._job, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
        )

    def adopt(self, pid: int) -> None:
        """Takes charge of the tree below the process `pid`, just started with `spawn_options`."""
        process = _kernel.OpenProcess(_SET_QUOTA_AND_TERMINATE, False, pid)
        if process:
            _kernel.AssignProcessToJobObject(self._job, process)
            _kernel.CloseHandle(process)

    def terminate(self) -> None:
        """Ends every process of the job: Windows has no way to ask a process without a window."""
        self.kill()

    def kill(self) -> None:
        """Ends every process of the job at once."""
        if self._job is not None:
            _kernel.TerminateJobObject(self._job, 1)

    def is_alive(self) -> bool:
        """Whether the job has processes."""
        if self._job is None:
            return False
        accounting = _Accounting()
        known = _kernel.QueryInformationJobObject(
            self._job, _BASIC_ACCOUNTING_INFORMATION, ctypes.byref(accounting), ctypes.sizeof(accounting), None
        )
        return bool(known) and accounting.ActiveProcesses > 0

    async def release(self) -> None:
        """Lets go of the tree. Call after `kill`."""
        if self._job is not None:
            _kernel.CloseHandle(self._job)
            self._job = None
