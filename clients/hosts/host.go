// A host of Agent Sidecar in Go 1.18 or later: go build host.go && ./host PROMPT...
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/textproto"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

type object = map[string]any

// message is a request, a notification or an answer, as far as this host looks into it.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		RunID, Title string
		Input        json.RawMessage
		Event        struct {
			Type, Text, ToolName, StopReason string
			IsError                          bool
		}
	}
	Result struct {
		SessionID    *string
		Capabilities struct{ Experimental map[string]map[string]any }
	}
	Error *struct {
		Message string
		Data    struct{ Kind string }
	}
}

var (
	sidecar   = exec.Command("agent-sidecar", "--cwd", ".")
	to, _     = sidecar.StdinPipe()
	output, _ = sidecar.StdoutPipe()
	from      = bufio.NewReader(output)
	person    = bufio.NewScanner(os.Stdin)
)

func main() {
	log.SetFlags(0)
	sidecar.Stderr = os.Stderr
	if err := sidecar.Start(); err != nil {
		log.Fatal(err)
	}
	able := object{"experimental": object{"agentSidecar": object{"approvals": true, "hostTools": true}}}
	ready := request("1", "initialize", object{"processId": os.Getpid(), "capabilities": able})
	version := ready.Result.Capabilities.Experimental["agentSidecar"]["protocolVersion"]
	if !strings.HasPrefix(fmt.Sprint(version), "1.") {
		end("there is no sidecar of version 1 to work with")
	}
	send(object{"method": "initialized", "params": object{}})
	tool := object{"name": "host_language", "description": "The language of this host", "inputSchema": object{}}
	request("2", "tools/register", object{"tools": []object{tool}})
	var session *string // Each prompt goes on with the session of the one before.
	for _, prompt := range os.Args[1:] {
		id := fmt.Sprintf("go-%d", time.Now().UnixNano())
		done := request(id, "agent/submit", object{"prompt": prompt, "runId": id, "sessionId": session})
		session = done.Result.SessionID
	}
	request("3", "shutdown", nil)
	send(object{"method": "exit"})
	end(nil)
}

// end has the sidecar end, by force where that is not enough, and then the host.
func end(failure any) {
	to.Close()
	time.AfterFunc(3*time.Second, func() { sidecar.Process.Kill() })
	sidecar.Wait()
	if failure != nil {
		log.Fatal(failure)
	}
}

// request returns the answer; what comes before it is dealt with as it comes. A run has the id of its request.
func request(id, method string, params any) message {
	send(object{"id": id, "method": method, "params": params})
	for {
		m := receive()
		switch {
		case m.Method == "" && string(m.ID) == strconv.Quote(id):
			if m.Error != nil {
				end(m.Error.Data.Kind + ": " + m.Error.Message)
			}
			return m
		case m.Method == "agent/event" && m.Params.RunID == id:
			show(m)
		case m.Method != "" && m.ID != nil:
			answer(m)
		} // What a host does not know it passes over.
	}
}

func answer(m message) {
	switch m.Method {
	case "tools/execute":
		send(object{"id": m.ID, "result": object{"ok": true, "data": "Go"}})
	case "agent/requestApproval":
		log.Printf("* %s %s [y/n]", m.Params.Title, m.Params.Input)
		decision := "deny"
		if person.Scan() && strings.HasPrefix(person.Text(), "y") {
			decision = "allowOnce"
		}
		send(object{"id": m.ID, "result": object{"decision": decision}})
	default:
		send(object{"id": m.ID, "error": object{"code": -32601, "message": "there is no such method here"}})
	}
}

func send(fields object) {
	fields["jsonrpc"] = "2.0"
	body, _ := json.Marshal(fields)
	fmt.Fprintf(to, "Content-Length: %d\r\n\r\n%s", len(body), body) // What is lost is noticed when it is read from.
}

func receive() (m message) {
	header, _ := textproto.NewReader(from).ReadMIMEHeader()
	length, _ := strconv.Atoi(header.Get("Content-Length"))
	body := make([]byte, length)
	if _, err := io.ReadFull(from, body); err != nil || length == 0 {
		end("the sidecar has ended")
	}
	json.Unmarshal(body, &m) // What does not fit is nothing that this host knows.
	return m
}

func show(m message) {
	switch e := m.Params.Event; e.Type {
	case "assistantTextDelta":
		fmt.Print(e.Text)
	case "turnComplete":
		fmt.Println()
	case "toolExecutionCompleted":
		log.Println("*", map[bool]string{true: "failed", false: "ok"}[e.IsError], e.ToolName)
	case "runCompleted":
		log.Println("*", e.StopReason)
	}
}
