package daemon

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/parts"
)

// Protocol is the version of the protocol between a client and a daemon. Each incompatible change
// increases it.
const Protocol = 1

// The kinds of clients.
const (
	// AsAgent is an agent's pipe: MCP follows, a message on each line.
	AsAgent = "agent"
	// AsCommand is a person's command, such as pagewire ls: MCP follows. It does not keep the
	// daemon running.
	AsCommand = "command"
	// AsHTTP is a process of this user that sends HTTP requests. It does not keep the daemon
	// running.
	AsHTTP = "http"
	// AsSuccessor is a process that asks the daemon to retire, so that another can run.
	AsSuccessor = "successor"
	// AsProbe is a pipe that tests whether the daemon answers.
	AsProbe = "probe"
)

// The daemon's lines to a pipe between the agent's messages. No message begins like one of these.
const (
	beatLine     = "\n"
	retireLine   = "!retire\n"
	handoverHead = "!snapshot "
	noticeHead   = "!notice "
)

const (
	// maxToAgent is the longest line of a daemon, in bytes. A gateway passes on results with up to
	// 32 MiB of contents.
	maxToAgent = 64 << 20
	// beatEvery is the interval of the heartbeat.
	beatEvery = 500 * time.Millisecond
	// maxSilence bounds the silence of a daemon that works. It is the time of three heartbeats.
	maxSilence = 1600 * time.Millisecond
	// probeTimeout bounds the time in which a silent daemon answers on a new connection.
	probeTimeout = 700 * time.Millisecond
)

// A Hello is the first line in each direction of a connection. Nothing in it is run or written to,
// and only the addresses of a Launch are opened, by a browser.
type Hello struct {
	Protocol int    `json:"pagewire"`
	Version  string `json:"version"`
	// PID is the sender's process. Hooks find their agent by it.
	PID int `json:"pid,omitempty"`

	// A client's members:

	As string `json:"as,omitempty"`
	// Flags are this agent's. A daemon's has NoPageTools alone.
	Flags Flags `json:"flags,omitzero"`
	// Launch asks for the browser that the daemon launches. nil does not.
	Launch *Launch `json:"launch,omitempty"`
	// Notices means that the client takes the daemon's lines about notices.
	Notices bool `json:"notices,omitempty"`
	// Handover is what all agents of an earlier daemon shared, as it last sent it.
	Handover []byte `json:"snapshot,omitempty"`

	// A daemon's members:

	// Error says in a sentence why the daemon does not serve this client.
	Error string `json:"error,omitempty"`
	// Retires means that the daemon ends. The client must connect again.
	Retires bool `json:"retires,omitempty"`
	// Outdated means that the client is a newer build, or asks for what the daemon cannot do. It
	// must start another daemon.
	Outdated bool `json:"outdated,omitempty"`
	// Stays means that the daemon would be outdated, and serves this client since agents use its
	// browser.
	Stays bool `json:"stays,omitempty"`
}

// A Launch is an agent's request for the browser that the daemon launches. All agents with one
// share the browser.
type Launch struct {
	// Open are the addresses of the tabs.
	Open []string `json:"open,omitempty"`
	// Window shows a window; otherwise the browser is headless. Display means that the agent's
	// process could show one.
	Window  bool `json:"window,omitempty"`
	Display bool `json:"display,omitempty"`
	// DebugPort is a TCP port on which the browser also listens, for every process of the machine.
	// "0" is any, "" none.
	DebugPort string `json:"debugPort,omitempty"`
	// Inject gives a page layer to pages that have none.
	Inject bool `json:"inject,omitempty"`
	// Again means that an earlier daemon had this request. Notice is the last notice about the
	// browser.
	Again  bool   `json:"again,omitempty"`
	Notice string `json:"notice,omitempty"`
}

// Flags are the flags of one agent. They apply to this agent even if another agent has started the
// daemon.
type Flags struct {
	AllowOrigins []string `json:"allowOrigins,omitempty"`
	DenyOrigins  []string `json:"denyOrigins,omitempty"`
	OnlyOrigins  []string `json:"onlyOrigins,omitempty"`
	// Shown are origins whose pages the user shows the agent, and Opened are those of the addresses
	// that the launched browser opens, which count there.
	Shown  []string `json:"shown,omitempty"`
	Opened []string `json:"opened,omitempty"`
	// Parts are the user's rules for parts of these pages, and PartsFile has them: its path is
	// absolute.
	Parts     parts.Rules `json:"parts,omitempty"`
	PartsFile string      `json:"partsFile,omitempty"`
	Reminders string      `json:"reminders,omitempty"`
	Chrome    string      `json:"chrome,omitempty"`
	Inject    bool        `json:"inject,omitempty"`
	// DebuggingTools shows the agent the pages' tools for their developers.
	DebuggingTools bool `json:"debuggingTools,omitempty"`
	// NoPageTools hides the tools of all pages from the agent. A daemon repeats it in its hello: one
	// of an older build would show them.
	NoPageTools bool `json:"noPageTools,omitempty"`
	// NoSubscriptions switches the agent's resource subscriptions off.
	NoSubscriptions bool `json:"noSubscriptions,omitempty"`
	// Front shows the agent which tab is in front.
	Front bool `json:"front,omitempty"`
	// Name is the user's name for the profile of the browser.
	Name string `json:"name,omitempty"`
	// Debug makes the daemon's log verbose while this agent is connected.
	Debug bool `json:"debug,omitempty"`
}

const (
	// maxHello bounds a hello, in bytes: Handover in base64 and flags.
	maxHello = 512 << 10
	// maxHandover bounds what all agents share, in bytes.
	maxHandover = 256 << 10
	// maxText bounds a hello's version and error, in bytes: they are shown to people.
	maxText = 400
)

var errNotHello = errors.New("the first line is not a hello of Pagewire")

// readHello reads a hello. From a hello of another protocol it reads only Protocol and Version.
func readHello(in *bufio.Reader) (h Hello, err error) {
	line, over, err := readLine(in, maxHello)
	if err != nil {
		return Hello{}, err
	}
	var head struct {
		Protocol int `json:"pagewire"`
		Version  string
	}
	if over || json.Unmarshal(line, &head) != nil || head.Protocol < 1 ||
		len(head.Version) > maxText {
		return Hello{}, errNotHello
	}
	if head.Protocol != Protocol {
		return Hello{Protocol: head.Protocol, Version: head.Version}, nil
	}
	if json.Unmarshal(line, &h) != nil || len(h.Handover) > maxHandover || len(h.Error) > maxText {
		return Hello{}, errNotHello
	}
	return h, nil
}

func writeHello(w io.Writer, h Hello) error {
	h.Protocol = Protocol
	text, err := json.Marshal(h)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err
}

func otherProtocol(daemon, client Hello) string {
	return fmt.Sprintf(
		"pagewire %.40q runs (protocol %d), and this is %.40q (protocol %d): end all agents, and start "+
			"them with one version", daemon.Version, daemon.Protocol, client.Version,
		client.Protocol)
}

// readLine returns the next line with its line feed, valid until the next read. If the line has
// more than most bytes, it returns the beginning with a line feed, and over is true. At the end of
// the input it fails with io.EOF.
func readLine(in *bufio.Reader, most int) (line []byte, over bool, err error) {
	line, err = in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		for line = slices.Clone(line); err == bufio.ErrBufferFull; {
			var part []byte
			part, err = in.ReadSlice('\n')
			line = append(line, part[:min(len(part), most+1-min(len(line), most+1))]...)
		}
	}
	if len(line) > most {
		line, over = append(line[:most], '\n'), true
	}
	return line, over, err
}
