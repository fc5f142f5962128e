// A host of Agent Sidecar in Go, with the standard library.
//
//	go run host.go [--yes] PROMPT
//
// AGENT_SIDECAR is the command of the sidecar, AGENT_SIDECAR_OPTIONS its options as JSON.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

type object = map[string]any

var (
	from    *bufio.Reader
	to      io.Writer
	lastID  float64
	saysYes bool
)

func main() {
	arguments := os.Args[1:]
	if saysYes = len(arguments) > 0 && arguments[0] == "--yes"; saysYes {
		arguments = arguments[1:]
	}
	words := strings.Fields(or(os.Getenv("AGENT_SIDECAR"), "agent-sidecar"))
	sidecar := exec.Command(words[0], words[1:]...)
	sidecar.Stderr = os.Stderr
	to, _ = sidecar.StdinPipe()
	output, _ := sidecar.StdoutPipe()
	from = bufio.NewReader(output)
	must(sidecar.Start())
	failed, _ := converse(strings.Join(arguments, " "))["error"].(object)
	if failed != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n", failed["data"].(object)["kind"], failed["message"])
	}
	request("shutdown", nil)
	send(object{"method": "exit"})
	time.AfterFunc(5*time.Second, func() { sidecar.Process.Kill() })
	sidecar.Wait()
	if failed != nil {
		os.Exit(1)
	}
}

func converse(prompt string) object {
	able := object{"experimental": object{"agentSidecar": object{"approvals": true, "hostTools": true}}}
	options := json.RawMessage(or(os.Getenv("AGENT_SIDECAR_OPTIONS"), "{}"))
	start := object{"processId": os.Getpid(), "capabilities": able, "initializationOptions": options}
	if answer := request("initialize", start); answer["error"] != nil {
		return answer
	}
	send(object{"method": "initialized", "params": object{}})
	tool := object{"name": "host_language", "description": "This host's language", "inputSchema": object{"type": "object"}}
	request("tools/register", object{"tools": []object{tool}})
	defer fmt.Println()
	return request("agent/submit", object{"prompt": prompt})
}

func send(message object) {
	message["jsonrpc"] = "2.0"
	body, _ := json.Marshal(message)
	_, err := fmt.Fprintf(to, "Content-Length: %d\r\n\r\n%s", len(body), body)
	must(err)
}

func receive() (message object) {
	header, err := textproto.NewReader(from).ReadMIMEHeader()
	must(err)
	length, _ := strconv.Atoi(header.Get("Content-Length"))
	body := make([]byte, length)
	_, err = io.ReadFull(from, body)
	must(err)
	must(json.Unmarshal(body, &message))
	return message
}

// request returns the answer; whatever comes before it is dealt with.
func request(method string, params any) object {
	lastID++
	send(object{"id": lastID, "method": method, "params": params})
	for {
		message := receive()
		params, _ := message["params"].(object)
		switch {
		case message["method"] == nil && message["id"] == lastID:
			return message
		case message["method"] != nil && message["id"] != nil:
			send(answer(message["id"], message["method"].(string), params))
		case message["method"] == "agent/event":
			show(params["event"].(object))
		}
	}
}

func answer(id any, method string, params object) object {
	switch method {
	case "agent/requestApproval":
		return object{"id": id, "result": object{"decision": decide(params)}}
	case "tools/execute":
		return object{"id": id, "result": object{"ok": true, "data": "Go"}}
	}
	return object{"id": id, "error": object{"code": -32601, "message": "there is no " + method + " here"}}
}

func decide(question object) string {
	input, _ := json.Marshal(question["input"])
	fmt.Printf("\n* %v (%s) [y/n]\n", question["title"], input)
	reply := "y"
	if !saysYes {
		reply, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
	if strings.HasPrefix(strings.ToLower(reply), "y") {
		return "allowOnce"
	}
	return "deny"
}

func show(event object) {
	switch event["type"] {
	case "assistantTextDelta":
		fmt.Print(event["text"])
	case "toolExecutionCompleted":
		fmt.Printf("\n* %s %s\n", map[any]string{true: "failed", false: "ok"}[event["isError"]], event["toolName"])
	}
}

func or(given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	return given
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the sidecar is lost:", err)
		os.Exit(1)
	}
}
