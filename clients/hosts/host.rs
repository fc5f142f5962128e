//! A host of Agent Sidecar in Rust: rustc -O --edition 2021 host.rs && ./host PROMPT...

use std::io::{self, BufRead, BufReader, Error, Read, Write};
use std::process::{self, Child, ChildStdout, Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

const HELLO: &str = r#"{"processId": null, "capabilities": {
    "experimental": {"agentSidecar": {"approvals": true, "hostTools": true}}}}"#;
const TOOLS: &str = r#"{"tools": [{"name": "host_language", "description": "Its language", "inputSchema": {}}]}"#;

fn main() {
    if let Err(error) = run(std::env::args().skip(1)) {
        eprintln!("{error}");
        process::exit(1);
    }
}

/// Submits the prompts, each in the session of the one before. The first that fails ends it all.
fn run(prompts: impl Iterator<Item = String>) -> io::Result<()> {
    let mut command = Command::new("agent-sidecar");
    let mut process = command.args(["--cwd", "."]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut sidecar = Sidecar { output: BufReader::new(process.stdout.take().expect("it is a pipe")), process };
    let ready = sidecar.request("1", "initialize", HELLO)?;
    if !text(&ready, "result.capabilities.experimental.agentSidecar.protocolVersion").starts_with("1.") {
        return Err(Error::other("there is no sidecar of version 1 to work with"));
    }
    sidecar.send(r#""method": "initialized", "params": {}"#)?;
    sidecar.request("2", "tools/register", TOOLS)?;
    let mut session_id = "null".to_string();
    for prompt in prompts {
        let prompt: String = prompt.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let id = format!("rust-{}", UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos());
        let params = format!(r#"{{"prompt": "{prompt}", "runId": "{id}", "sessionId": {session_id}}}"#);
        session_id = at(&sidecar.request(&id, "agent/submit", &params)?, "result.sessionId").into();
    }
    sidecar.request("3", "shutdown", "null")?;
    sidecar.send(r#""method": "exit""#)
}

struct Sidecar {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Sidecar {
    /// The answer; what comes before it is dealt with as it comes. A run has the id of its request.
    fn request(&mut self, own_id: &str, method: &str, params: &str) -> io::Result<String> {
        self.send(&format!(r#""id": "{own_id}", "method": "{method}", "params": {params}"#))?;
        loop {
            let message = self.receive()?;
            let [id, params, error] = ["id", "params", "error"].map(|name| at(&message, name));
            match text(&message, "method").as_str() {
                "" if text(&message, "id") != own_id => (),
                "" if error == "null" => return Ok(message),
                "" => return Err(Error::other(text(error, "data.kind") + ": " + &text(error, "message"))),
                "agent/event" if text(params, "runId") == own_id => show(at(params, "event"))?,
                _ if id == "null" => (), // What a host does not know it passes over.
                asked => self.send(&format!(r#""id": {id}, {}"#, answer(asked, params)?))?,
            }
        }
    }

    fn send(&mut self, fields: &str) -> io::Result<()> {
        let body = format!(r#"{{"jsonrpc": "2.0", {fields}}}"#);
        let input = self.process.stdin.as_mut().expect("stdin is open until the end");
        write!(input, "Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn receive(&mut self) -> io::Result<String> {
        let lines = self.output.by_ref().lines().map_while(|line| Some(line.ok()?.to_lowercase()));
        let header = lines.take_while(|line| !line.is_empty());
        let lengths = header.filter_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; lengths.last().ok_or_else(|| Error::other("the sidecar has ended"))?];
        self.output.read_exact(&mut body)?;
        String::from_utf8(body).map_err(Error::other)
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let mut waits = 0..300;
        while matches!(self.process.try_wait(), Ok(None)) && waits.next().is_some() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill(); // Has no effect where it has ended.
    }
}

fn answer(method: &str, params: &str) -> io::Result<String> {
    Ok(match method {
        "tools/execute" => r#""result": {"ok": true, "data": "Rust"}"#.into(),
        "agent/requestApproval" => {
            eprintln!("* {} {} [y/n]", text(params, "title"), at(params, "input"));
            let mut reply = String::new();
            io::stdin().read_line(&mut reply)?;
            let decision = if reply.starts_with('y') { "allowOnce" } else { "deny" };
            format!(r#""result": {{"decision": "{decision}"}}"#)
        }
        _ => r#""error": {"code": -32601, "message": "there is no such method here"}"#.into(),
    })
}

fn show(event: &str) -> io::Result<()> {
    let text = |name| text(event, name);
    match text("type").as_str() {
        "assistantTextDelta" => print!("{}", text("text")),
        "turnComplete" => println!(),
        "toolExecutionCompleted" if at(event, "isError") == "true" => eprintln!("* failed {}", text("toolName")),
        "toolExecutionCompleted" => eprintln!("* ok {}", text("toolName")),
        "runCompleted" => eprintln!("* {}", text("stopReason")),
        _ => (),
    }
    io::stdout().flush()
}

/// The value at a path such as `params.event.text`, as valid JSON has it; null where there is none.
fn at<'a>(json: &'a str, path: &str) -> &'a str {
    path.split('.').fold(json, |object, name| {
        let inside = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or("");
        let (mut depth, mut in_text, mut is_escaped) = (0, false, false);
        let separates = |char| {
            in_text ^= char == '"' && !is_escaped;
            is_escaped = char == '\\' && !is_escaped;
            match char {
                '[' | '{' if !in_text => depth += 1,
                ']' | '}' if !in_text => depth -= 1,
                _ => (),
            }
            depth == 0 && !in_text && (char == ',' || char == ':')
        };
        let parts: Vec<_> = inside.split(separates).map(str::trim).collect();
        parts.chunks_exact(2).find(|field| field[0].trim_matches('"') == name).map_or("null", |field| field[1])
    })
}

/// What the string at the path says; nothing where there is none.
fn text(json: &str, path: &str) -> String {
    let mut chars = at(json, path).strip_prefix('"').unwrap_or("").strip_suffix('"').unwrap_or("").chars();
    let mut units = vec![]; // Of UTF-16, because `\u` has them.
    while let Some(char) = chars.next() {
        match if char == '\\' { chars.next() } else { None } {
            None => units.extend_from_slice(char.encode_utf16(&mut [0; 2])),
            Some('u') => units.extend(u16::from_str_radix(&chars.by_ref().take(4).collect::<String>(), 16)),
            Some(escape) => units.push("bfnrt".find(escape).map_or(escape as u16, |at| [8, 12, 10, 13, 9][at])),
        }
    }
    String::from_utf16_lossy(&units)
}
