#!/usr/bin/env perl
# A host of Agent Sidecar in Perl, with what every Perl brings along.
#
#   perl host.pl [--yes] PROMPT
#
# AGENT_SIDECAR is the command of the sidecar, AGENT_SIDECAR_OPTIONS its options as JSON.
use strict;
use warnings;
use IPC::Open2 qw(open2);
use JSON::PP;

my $yes    = @ARGV && $ARGV[0] eq '--yes' ? shift @ARGV : 0;
my $prompt = shift @ARGV or die "usage: perl host.pl [--yes] PROMPT\n";
my $json   = JSON::PP->new->utf8->canonical;
my ($last_id, $ends_line) = (0, 1);

$| = 1;
binmode STDOUT, ':utf8';
my $pid = open2(my $from, my $to, split ' ', $ENV{AGENT_SIDECAR} // 'agent-sidecar');
binmode $_ for $from, $to;

sub send_message {
    my $body = $json->encode({jsonrpc => '2.0', %{$_[0]}});
    print {$to} 'Content-Length: ', length $body, "\r\n\r\n", $body;
    $to->flush;
}

sub receive {
    my $length;
    while (defined(my $line = <$from>)) {
        $line =~ s/\r?\n\z//;
        last if $line eq '';
        $length = $1 if $line =~ /^content-length:\s*(\d+)/i;
    }
    die "the sidecar has ended\n" unless defined $length;
    my $body = '';
    while (length $body < $length) {
        read($from, $body, $length - length $body, length $body) or die "the sidecar has ended\n";
    }
    return $json->decode($body);
}

# The answer to a request; whatever comes before it is dealt with.
sub request {
    my ($method, $params) = @_;
    my $id = ++$last_id;
    send_message({id => $id, method => $method, params => $params});
    while (1) {
        my $message = receive();
        if (!exists $message->{method}) {
            return $message if defined $message->{id} && $message->{id} eq $id;
        }
        elsif (exists $message->{id}) { answer($message) }
        elsif ($message->{method} eq 'agent/event') { show($message->{params}{event}) }
    }
}

sub answer {
    my ($asked) = @_;
    my ($method, $params) = @$asked{qw(method params)};
    my %said =
        $method eq 'agent/requestApproval' ? (result => decide($params))
      : $method eq 'tools/execute'         ? (result => {ok => JSON::PP::true, data => "Perl $^V"})
      :                                      (error  => {code => -32601, message => "there is no $method here"});
    send_message({id => $asked->{id}, %said});
}

sub decide {
    my ($question) = @_;
    line("$question->{title} (" . $json->encode($question->{input}) . ") [y/n]");
    my $allowed = $yes || (<STDIN> // '') =~ /^y/i;
    return {decision => $allowed ? 'allowOnce' : 'deny'};
}

sub show {
    my ($event) = @_;
    if ($event->{type} eq 'assistantTextDelta') {
        print $event->{text};
        $ends_line = $event->{text} =~ /\n\z/;
    }
    elsif ($event->{type} eq 'toolExecutionCompleted') {
        line(($event->{isError} ? 'failed ' : 'ok ') . $event->{toolName});
    }
}

sub line {
    print "\n" unless $ends_line;
    print "* $_[0]\n";
    $ends_line = 1;
}

my $able  = {experimental => {agentSidecar => {approvals => JSON::PP::true, hostTools => JSON::PP::true}}};
my $clock = {name => 'host_language', description => 'The language of this host', inputSchema => {type => 'object'}};
my $start = request('initialize', {
    processId             => $$,
    capabilities          => $able,
    initializationOptions => $json->decode($ENV{AGENT_SIDECAR_OPTIONS} // '{}'),
});
my $done = $start;
if (!$start->{error}) {
    send_message({method => 'initialized', params => {}});
    request('tools/register', {tools => [$clock]});
    $done = request('agent/submit', {prompt => $prompt});
    print "\n" unless $ends_line;
}
if (my $error = $done->{error}) {
    printf STDERR "%s: %s\n", $error->{data}{kind} // $error->{code}, $error->{message};
}
request('shutdown', undef);
send_message({method => 'exit'});
close $to;
local $SIG{ALRM} = sub { kill 'KILL', $pid };
alarm 5;
waitpid $pid, 0;
exit($done->{error} ? 1 : 0);
