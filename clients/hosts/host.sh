#!/usr/bin/env bash
# A host of Agent Sidecar in bash, with jq.
#
#   bash host.sh [--yes] PROMPT
#
# AGENT_SIDECAR is the command of the sidecar, AGENT_SIDECAR_OPTIONS its options as JSON.
set -euo pipefail
export LC_ALL=C # Lengths are in bytes.

yes=""
if [ "${1-}" = --yes ]; then yes=1 && shift; fi
prompt=${1:?usage: host.sh [--yes] PROMPT}
last_id=0
ends_line=1

# shellcheck disable=SC2086  # It is a command line.
coproc SIDECAR { exec ${AGENT_SIDECAR:-agent-sidecar}; }
sidecar_pid=$SIDECAR_PID
exec {from}<&"${SIDECAR[0]}" {to}>&"${SIDECAR[1]}"

send() { # a message without `jsonrpc`
  local body
  body=$(jq -c '{jsonrpc: "2.0"} + .' <<<"$1")
  printf 'Content-Length: %d\r\n\r\n%s' "${#body}" "$body" >&"$to"
}

receive() { # leaves the next message in `message`
  local header length=""
  while IFS= read -r -u "$from" header && header=${header%$'\r'} && [ -n "$header" ]; do
    [[ ${header,,} =~ ^content-length:[[:space:]]*([0-9]+) ]] && length=${BASH_REMATCH[1]}
  done
  [ -n "$length" ] || { echo "the sidecar has ended" >&2 && exit 1; }
  IFS= read -r -u "$from" -N "$length" -d '' message
}

request() { # method, params; leaves the answer in `message`
  local id=$((++last_id)) kind
  send "$(jq -nc --argjson id "$id" --arg method "$1" --argjson params "$2" '{$id, $method, $params}')"
  while receive; do
    kind=$(jq -r --argjson id "$id" 'if has("method") then (if has("id") then "request" else .method end)
                                     elif .id == $id then "answer" else "other" end' <<<"$message")
    case $kind in
      answer) return ;;
      request) answer ;;
      agent/event) show ;;
    esac
  done
}

answer() {
  local said
  case $(jq -r .method <<<"$message") in
    agent/requestApproval) decide ;;
    tools/execute) said='{"result": {"ok": true, "data": "bash"}}' ;;
    *) said='{"error": {"code": -32601, "message": "there is no such method here"}}' ;;
  esac
  send "$(jq -c --argjson said "$said" '{id} + $said' <<<"$message")"
}

decide() {
  local reply=y
  line "$(jq -r '.params | "\(.title) (\(.input | tojson)) [y/n]"' <<<"$message")"
  [ -n "$yes" ] || read -r reply || reply=n
  said='{"result": {"decision": "deny"}}'
  [[ $reply != [yY]* ]] || said='{"result": {"decision": "allowOnce"}}'
}

show() {
  local text
  case $(jq -r .params.event.type <<<"$message") in
    assistantTextDelta)
      text=$(jq -j '.params.event.text, "."' <<<"$message") # The point keeps line ends at the end.
      text=${text%.}
      printf %s "$text"
      ends_line=""
      [[ $text != *$'\n' ]] || ends_line=1
      ;;
    toolExecutionCompleted)
      line "$(jq -r '.params.event | (if .isError then "failed " else "ok " end) + .toolName' <<<"$message")"
      ;;
  esac
}

line() {
  [ -n "$ends_line" ] || echo
  printf '* %s\n' "$1"
  ends_line=1
}

able='{"experimental": {"agentSidecar": {"approvals": true, "hostTools": true}}}'
tool='{"name": "host_language", "description": "The language of this host", "inputSchema": {"type": "object"}}'
options=${AGENT_SIDECAR_OPTIONS:-'{}'}
request initialize "$(jq -nc --argjson pid $$ --argjson able "$able" --argjson options "$options" \
  '{processId: $pid, capabilities: $able, initializationOptions: $options}')"
if ! jq -e .error <<<"$message" >/dev/null; then
  send '{"method": "initialized", "params": {}}'
  request tools/register "{\"tools\": [$tool]}"
  request agent/submit "$(jq -nc --arg prompt "$prompt" '{$prompt}')"
  [ -n "$ends_line" ] || echo
fi
status=0
if jq -e .error <<<"$message" >/dev/null; then
  status=1
  jq -r '.error | "\(.data.kind // .code): \(.message)"' <<<"$message" >&2
fi
request shutdown null
send '{"method": "exit"}'
exec {to}>&-
wait "$sidecar_pid" || true
exit "$status"
