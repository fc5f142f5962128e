#!/usr/bin/env perl
# A host of Agent Sidecar in Perl, with what every Perl brings along: perl host.pl PROMPT...
use strict;
use warnings;
use IO::Handle;
use IPC::Open2 qw(open2);
use JSON::PP;
use Time::HiRes qw(time);

my $json = JSON::PP->new->utf8->canonical;

for my $stream (*STDOUT, *STDERR) {
    binmode $stream, ':encoding(UTF-8)';
    $stream->autoflush;
}
$SIG{PIPE} = 'IGNORE';    # What is lost is noticed when it is read from.
my $pid = open2(my $from, my $to, qw(agent-sidecar --cwd .));
binmode $_ for $from, $to;

start();
my $session_id;
$session_id = submit($_, $session_id) for @ARGV;
request('3', 'shutdown', undef);
send_message(method => 'exit');
finish(0);

sub start {
    my $able   = {experimental => {agentSidecar => {approvals => JSON::PP::true, hostTools => JSON::PP::true}}};
    my $result = request('1', 'initialize', {processId => $$, capabilities => $able});
    my $version = $result->{capabilities}{experimental}{agentSidecar}{protocolVersion} // '';
    give_up('there is no sidecar of version 1 to work with') unless $version =~ /^1\./;
    send_message(method => 'initialized', params => {});
    my $tool = {name => 'host_language', description => 'The language of this host', inputSchema => {}};
    request('2', 'tools/register', {tools => [$tool]});
}

# Waits for the end of the run; the session in which the next one goes on.
sub submit {
    my ($prompt, $session_id) = @_;
    utf8::decode($prompt);
    my $id = "perl-$$-" . time;
    return request($id, 'agent/submit', {prompt => $prompt, runId => $id, sessionId => $session_id})->{sessionId};
}

sub finish {
    my ($status) = @_;
    close $to;
    local $SIG{ALRM} = sub { kill KILL => $pid };
    alarm 3;
    waitpid $pid, 0;
    exit $status;
}

sub give_up {
    print STDERR "@_\n";
    finish(1);
}

# The result; what comes before it is dealt with as it comes. A run has the id of its request.
sub request {
    my ($own_id, $method, $params) = @_;
    send_message(id => $own_id, method => $method, params => $params);
    while (1) {
        my $message = receive();
        my ($id, $asked) = @$message{qw(id method)};
        if (defined $asked && defined $id) {
            send_message(id => $id, answer($asked, $message->{params}));
        }
        elsif (defined $asked) {    # What a host does not know it passes over.
            show($message->{params}{event}) if $asked eq 'agent/event' && $message->{params}{runId} eq $own_id;
        }
        elsif (defined $id && $id eq $own_id) {
            my $error = $message->{error} or return $message->{result};
            give_up(($error->{data}{kind} // 'error') . ": $error->{message}");
        }
    }
}

sub send_message {
    my $body = $json->encode({jsonrpc => '2.0', @_});
    print {$to} 'Content-Length: ', length $body, "\r\n\r\n", $body;
    $to->flush;
}

sub receive {
    my $length = 0;
    while (defined(my $line = <$from>)) {
        last if $line =~ /^\r?\n/;
        $length = $1 if $line =~ /^content-length:\s*(\d+)/i;
    }
    my $got = read($from, my $body, $length);
    give_up('the sidecar has ended') unless $got && $got == $length;
    return $json->decode($body);
}

sub answer {
    my ($method, $params) = @_;
    return (result => {decision => allows($params) ? 'allowOnce' : 'deny'}) if $method eq 'agent/requestApproval';
    return (result => {ok => JSON::PP::true, data => "Perl $^V"}) if $method eq 'tools/execute';
    return (error => {code => -32601, message => "there is no $method here"});
}

sub allows {
    my ($question) = @_;
    my $input = JSON::PP->new->canonical->encode($question->{input});
    print STDERR "* $question->{title} $input [y/n]\n";
    return (<STDIN> // '') =~ /^y/;
}

sub show {
    my ($event) = @_;
    my $type = $event->{type};
    if ($type eq 'assistantTextDelta') {
        print $event->{text};
    }
    elsif ($type eq 'turnComplete') {
        print "\n";
    }
    elsif ($type eq 'toolExecutionCompleted') {
        print STDERR '* ', $event->{isError} ? 'failed' : 'ok', " $event->{toolName}\n";
    }
    elsif ($type eq 'runCompleted') {
        print STDERR "* $event->{stopReason}\n";
    }
}
