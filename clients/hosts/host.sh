#!/usr/bin/env bash
# A host of Agent Sidecar in bash 4.1 or later, with jq: bash host.sh PROMPT...
set -euo pipefail
export LC_ALL=C # Lengths are in bytes.
trap '' PIPE    # What is lost is noticed when it is read from.

coproc SIDECAR { exec agent-sidecar --cwd .; }
pid=$SIDECAR_PID
exec {from}<&"${SIDECAR[0]}" {to}>&"${SIDECAR[1]}" {SIDECAR[0]}<&- {SIDECAR[1]}>&-

bodies() { # what comes, as a line of JSON for each frame
  local header body length
  while true; do
    length=0
    while IFS= read -r -u "$from" header && header=${header%$'\r'} && [ -n "$header" ]; do
      if [[ ${header,,} =~ ^content-length:[[:space:]]*([0-9]+) ]]; then length=${BASH_REMATCH[1]}; fi
    done
    if [ "$length" = 0 ] || ! IFS= read -r -u "$from" -N "$length" body; then return; fi
    printf '%s\n' "$body"
  done
}

# One jq for all messages makes of each a line: what it is, its id as JSON, its run, and what there is to show.
exec {messages}< <(exec {to}>&- && bodies | jq --unbuffered --raw-output '
  def line(what; text): [what, (.id | tojson), (.params.runId? // "-"), text] | @tsv;
  if .error then line("error"; "\(.error.data.kind): \(.error.message)")
  elif .method == null then line("result"; .result | tojson)
  elif .method == "agent/requestApproval" then line(.method; "* \(.params.title) \(.params.input | tojson) [y/n]\n")
  elif .id != null then line(.method; "")
  elif .method != "agent/event" then empty # What a host does not know it passes over.
  else .params.event as $event | ({
    assistantTextDelta: ["answer", $event.text],
    turnComplete: ["answer", "\n"],
    toolExecutionCompleted: ["news", "* \(if $event.isError then "failed" else "ok" end) \($event.toolName)\n"],
    runCompleted: ["news", "* \($event.stopReason)\n"]
  }[$event.type] // empty) as [$what, $text] | line($what; $text) end')

finish() {
  local ended=0
  exec {to}>&-
  until ((ended)); do read -r -t 3 -u "$messages" || ended=$?; done
  ((ended <= 128)) || kill -KILL "$pid" # Not what is read has ended, but the time.
}
trap finish EXIT

give_up() {
  printf '%s\n' "$1" >&2
  exit 1
}

send() { # the fields of a message
  local body="{\"jsonrpc\": \"2.0\", $1}"
  printf 'Content-Length: %d\r\n\r\n%s' "${#body}" "$body" >&"$to" || true
}

request() { # id, method, params; leaves the result in `result`. A run has the id of its request
  local what id run text
  send "\"id\": \"$1\", \"method\": \"$2\", \"params\": $3"
  while IFS=$'\t' read -r -u "$messages" what id run text; do
    printf -v text %b "$text"
    case $what:$id:$run in
      result:"\"$1\"":*) result=$text && return ;;
      error:"\"$1\"":*) give_up "$text" ;;
      answer:*:"$1") printf %s "$text" ;;
      news:*:"$1") printf %s "$text" >&2 ;;
      agent/requestApproval:*) send "\"id\": $id, \"result\": {\"decision\": \"$(decision "$text")\"}" ;;
      tools/execute:*) send "\"id\": $id, \"result\": {\"ok\": true, \"data\": \"bash\"}" ;;
      result:* | error:* | answer:* | news:*) ;; # Not of this request, or not of its run.
      *) send "\"id\": $id, \"error\": {\"code\": -32601, \"message\": \"there is no such method here\"}" ;;
    esac
  done
  give_up "the sidecar has ended"
}

decision() { # on the call that is shown
  local reply=""
  printf %s "$1" >&2
  read -r reply || true
  if [[ $reply == y* ]]; then echo allowOnce; else echo deny; fi
}

start() {
  local able='{"experimental": {"agentSidecar": {"approvals": true, "hostTools": true}}}'
  request 1 initialize "{\"processId\": $$, \"capabilities\": $able}"
  [[ $(jq -r '.capabilities.experimental.agentSidecar.protocolVersion?' <<<"$result") == 1.* ]] ||
    give_up "there is no sidecar of version 1 to work with"
  send '"method": "initialized", "params": {}'
  request 2 tools/register '{"tools": [
    {"name": "host_language", "description": "The language of this host", "inputSchema": {}}]}'
}

submit() { # goes on with the session of the run before
  local id=bash-$$-$RANDOM-$(date +%s) prompt
  prompt=$(jq -n --arg prompt "$1" '$prompt')
  request "$id" agent/submit "{\"prompt\": $prompt, \"runId\": \"$id\", \"sessionId\": $session_id}"
  session_id=$(jq .sessionId <<<"$result")
}

start
session_id=null
for prompt; do submit "$prompt"; done
request 3 shutdown null
send '"method": "exit"'
