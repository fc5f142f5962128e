// A host of Agent Sidecar in Java 17 or later: javac Host.java && java Host PROMPT...

import static java.lang.ProcessBuilder.Redirect.INHERIT;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.*;
import java.util.*;
import java.util.regex.*;
import java.util.stream.Collectors;

class Host implements Closeable {
    private static final Pattern TOKEN = Pattern.compile("\"(?:[^\"\\\\]++|\\\\.)*+\"|[{}\\[\\]]|[\\w.+-]+");
    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u(.{4})|.)");
    private final Process sidecar = new ProcessBuilder("agent-sidecar", "--cwd", ".").redirectError(INHERIT).start();
    private final DataInputStream output = new DataInputStream(new BufferedInputStream(sidecar.getInputStream()));
    private final Scanner person = new Scanner(System.in);

    Host() throws IOException { }

    public static void main(String... prompts) {
        System.setOut(new PrintStream(System.out, true, UTF_8));
        System.setErr(new PrintStream(System.err, true, UTF_8));
        try (var host = new Host()) {
            host.run(prompts);
        } catch (IOException error) {
            System.err.println(error instanceof EOFException ? "the sidecar has ended" : error.getMessage());
            System.exit(1);
        }
    }

    /** Submits the prompts, each in the session of the one before. The first that fails ends it all. */
    void run(String... prompts) throws IOException {
        var ready = request("1", "initialize", """
            {"processId": null, "capabilities": {
                "experimental": {"agentSidecar": {"approvals": true, "hostTools": true}}}}""");
        if (!text(ready.get("/result/capabilities/experimental/agentSidecar/protocolVersion")).startsWith("1."))
            throw new IOException("there is no sidecar of version 1 to work with");
        send("\"method\": \"initialized\", \"params\": {}");
        request("2", "tools/register", """
            {"tools": [
                {"name": "host_language", "description": "The language of this host", "inputSchema": {}}]}""");
        var sessionId = "null";
        for (var prompt : prompts) {
            var runId = "java-" + UUID.randomUUID();
            var params = """
                {"prompt": %s, "runId": "%s", "sessionId": %s}""".formatted(quoted(prompt), runId, sessionId);
            sessionId = request(runId, "agent/submit", params).get("/result/sessionId");
        }
        request("3", "shutdown", "null");
        send("\"method\": \"exit\"");
    }

    public void close() throws IOException {
        sidecar.getOutputStream().close();
        sidecar.onExit().completeOnTimeout(sidecar, 3, java.util.concurrent.TimeUnit.SECONDS).join();
        sidecar.destroyForcibly(); // Has no effect where it has ended.
    }

    /** The answer; what comes before it is dealt with as it comes. A run has the id of its request. */
    Map<String, String> request(String ownId, String method, String params) throws IOException {
        send("""
            "id": "%s", "method": "%s", "params": %s""".formatted(ownId, method, params));
        while (true) {
            var message = receive();
            var asked = text(message.get("/method"));
            if (asked.isEmpty() && text(message.get("/id")).equals(ownId)) {
                if (!message.containsKey("/error")) return message;
                var kind = text(message.get("/error/data/kind"));
                throw new IOException(kind + ": " + text(message.get("/error/message")));
            } else if (asked.equals("agent/event") && text(message.get("/params/runId")).equals(ownId)) {
                show(message);
            } else if (!asked.isEmpty() && message.containsKey("/id")) {
                send("\"id\": " + message.get("/id") + ", " + answer(message));
            } // What a host does not know it passes over.
        }
    }

    String answer(Map<String, String> message) {
        return switch (text(message.get("/method"))) {
            case "tools/execute" -> "\"result\": {\"ok\": true, \"data\": \"Java\"}";
            case "agent/requestApproval" -> {
                System.err.printf("* %s %s [y/n]%n", text(message.get("/params/title")), message.get("/params/input"));
                var isAllowed = person.hasNextLine() && person.nextLine().startsWith("y");
                yield "\"result\": {\"decision\": \"" + (isAllowed ? "allowOnce" : "deny") + "\"}";
            }
            default -> "\"error\": {\"code\": -32601, \"message\": \"there is no such method here\"}";
        };
    }

    void show(Map<String, String> message) {
        switch (text(message.get("/params/event/type"))) {
            case "assistantTextDelta" -> System.out.print(text(message.get("/params/event/text")));
            case "turnComplete" -> System.out.println();
            case "toolExecutionCompleted" -> System.err.printf("* %s %s%n",
                "true".equals(message.get("/params/event/isError")) ? "failed" : "ok",
                text(message.get("/params/event/toolName")));
            case "runCompleted" -> System.err.println("* " + text(message.get("/params/event/stopReason")));
            default -> { }
        }
    }

    void send(String fields) throws IOException {
        var body = "{\"jsonrpc\": \"2.0\", " + fields + "}";
        var header = "Content-Length: " + body.getBytes(UTF_8).length + "\r\n\r\n";
        sidecar.getOutputStream().write((header + body).getBytes(UTF_8));
        sidecar.getOutputStream().flush();
    }

    Map<String, String> receive() throws IOException {
        var header = new StringBuilder();
        while (header.indexOf("\r\n\r\n") < 0) header.append((char) output.readByte());
        var length = Pattern.compile("(?i)content-length: *(\\d+)").matcher(header);
        var body = new byte[length.find() ? Integer.parseInt(length.group(1)) : 0];
        output.readFully(body);
        var json = new String(body, UTF_8);
        var values = new HashMap<String, String>();
        read(json, TOKEN.matcher(json), "", values);
        return values;
    }

    /** Notes the next value of valid JSON, and those in it, by their paths; false where an array ends instead. */
    static boolean read(String json, Matcher tokens, String path, Map<String, String> values) {
        if (!tokens.find() || tokens.group().equals("]")) return false;
        int start = tokens.start();
        if (tokens.group().equals("[")) {
            while (read(json, tokens, path + "/-", values)) { }
        } else if (tokens.group().equals("{")) {
            while (tokens.find() && !tokens.group().equals("}"))
                read(json, tokens, path + "/" + tokens.group().replace("\"", ""), values);
        }
        if (!tokens.group().equals("null")) values.put(path, json.substring(start, tokens.end()));
        return true;
    }

    /** What a string says; nothing where there is none. */
    static String text(String json) {
        if (json == null || !json.startsWith("\"")) return "";
        return ESCAPE.matcher(json.substring(1, json.length() - 1)).replaceAll(found -> Matcher.quoteReplacement(
            switch (found.group().charAt(1)) {
                case 'u' -> Character.toString(Integer.parseInt(found.group(1), 16));
                case '/' -> "/";
                default -> found.group().translateEscapes();
            }));
    }

    static String quoted(String text) {
        return text.chars().mapToObj("\\u%04x"::formatted).collect(Collectors.joining("", "\"", "\""));
    }
}
