#!/usr/bin/env ruby
# frozen_string_literal: true

# A host of Agent Sidecar in Ruby 3.1 or later: ruby host.rb PROMPT...

require "json"
require "open3"
require "securerandom"

# A sidecar of one's own.
class Sidecar
  def initialize
    @to, @from, @process = Open3.popen2("agent-sidecar", "--cwd", ".")
    [@to, @from].each(&:binmode)
  end

  def start
    able = { experimental: { agentSidecar: { approvals: true, hostTools: true } } }
    result = request("1", "initialize", { processId: Process.pid, capabilities: able })
    version = result.dig(:capabilities, :experimental, :agentSidecar, :protocolVersion)
    raise "there is no sidecar of version 1 to work with" unless version.to_s.start_with?("1.")

    send_message({ method: "initialized", params: {} })
    tool = { name: "host_language", description: "The language of this host", inputSchema: {} }
    request("2", "tools/register", { tools: [tool] })
  end

  # Waits for the end of a run, which goes on with the session of the one before.
  def submit(prompt)
    id = "ruby-#{SecureRandom.uuid}"
    result = request(id, "agent/submit", { prompt: prompt, runId: id, sessionId: @session_id })
    @session_id = result[:sessionId]
  end

  def stop
    request("3", "shutdown", nil)
    send_message({ method: "exit" })
  end

  def finish
    @to.close
    Process.kill(:KILL, @process.pid) unless @process.join(3)
  end

  private

  # The result; what comes before it is dealt with as it comes. A run has the id of its request.
  def request(own_id, method, params)
    send_message({ id: own_id, method: method, params: params })
    loop do
      case receive
      in { method: String => asked, id: their_id, **rest }
        send_message({ id: their_id, **answer(asked, rest[:params]) })
      in { method: "agent/event", params: { runId: ^own_id, event: } }
        show(event)
      in { id: ^own_id, error: { message:, **rest } }
        raise "#{rest.dig(:data, :kind)}: #{message}"
      in { id: ^own_id, result: }
        return result
      else
        next # What a host does not know it passes over.
      end
    end
  end

  def send_message(message)
    body = JSON.generate({ jsonrpc: "2.0", **message })
    @to.write("Content-Length: #{body.bytesize}\r\n\r\n", body)
    @to.flush
  end

  def receive
    header = @from.gets("\r\n\r\n").to_s
    length = header[/^content-length:\s*(\d+)/i, 1].to_i
    body = @from.read(length)
    raise "the sidecar has ended" if length.zero? || body.to_s.bytesize < length

    JSON.parse(body.force_encoding(Encoding::UTF_8), symbolize_names: true)
  end

  def answer(method, params)
    case method
    when "agent/requestApproval"
      { result: { decision: allow?(params) ? "allowOnce" : "deny" } }
    when "tools/execute"
      { result: { ok: true, data: "Ruby #{RUBY_VERSION}" } }
    else
      { error: { code: -32_601, message: "there is no #{method} here" } }
    end
  end

  def allow?(question)
    warn "* #{question[:title]} #{JSON.generate(question[:input])} [y/n]"
    $stdin.gets.to_s.start_with?("y")
  end

  def show(event)
    case event
    in { type: "assistantTextDelta", text: } then print text
    in { type: "turnComplete" } then puts
    in { type: "toolExecutionCompleted", toolName:, isError: } then warn "* #{isError ? 'failed' : 'ok'} #{toolName}"
    in { type: "runCompleted", stopReason: } then warn "* #{stopReason}"
    else nil
    end
  end
end

$stdout.sync = true
begin
  sidecar = Sidecar.new
  sidecar.start
  ARGV.each { |prompt| sidecar.submit(prompt) }
  sidecar.stop
rescue RuntimeError, SystemCallError => e
  abort e.message
ensure
  sidecar&.finish
end
