package daemon

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Protocol is the version of the protocol between a client and a daemon. It grows with each incompatible change.
const Protocol = 1

// The kinds of clients.
const (
	// AsAgent is an agent's pipe: MCP follows, a message on each line.
	AsAgent = "agent"
	// AsCommand is a person's command, such as pagewire ls: MCP follows, and the daemon does not stay for it.
	AsCommand = "command"
	// AsHTTP is a process of this user that asks by HTTP. The daemon does not stay for it.
	AsHTTP = "http"
	// AsBrowser is an agent's process that has a share in the launched browser. Package launched defines what follows.
	AsBrowser = "browser"
	// AsSuccessor is a process that asks the daemon to make room for another.
	AsSuccessor = "successor"
	// AsProbe asks whether the daemon works, and nothing else.
	AsProbe = "probe"
)

// A Hello is the first line on a connection, each way. Nothing in it is run, opened or written to.
type Hello struct {
	Protocol int    `json:"pagewire"`
	Version  string `json:"version"`
	// PID is the sender's process. Hooks find their agent by it.
	PID int `json:"pid,omitempty"`

	// A client's members:

	As string `json:"as,omitempty"`
	// Flags are the agent's own.
	Flags Flags `json:"flags,omitzero"`
	// Snapshot is the session's snapshot from an earlier daemon, unchanged.
	Snapshot []byte `json:"snapshot,omitempty"`

	// A daemon's members:

	// Error is the reason, in a sentence, why it does not serve this client.
	Error string `json:"error,omitempty"`
	// Retires means that the daemon ends, and that the client must connect again.
	Retires bool `json:"retires,omitempty"`
	// Outdated means that the client is of a newer build, and must start another daemon.
	Outdated bool `json:"outdated,omitempty"`
}

// Flags are an agent's own. They decide what this agent sees, whichever agent was first.
type Flags struct {
	AllowOrigins []string `json:"allowOrigins,omitempty"`
	DenyOrigins  []string `json:"denyOrigins,omitempty"`
	OnlyOrigins  []string `json:"onlyOrigins,omitempty"`
	Reminders    string   `json:"reminders,omitempty"`
	Chrome       string   `json:"chrome,omitempty"`
	Inject       bool     `json:"inject,omitempty"`
	// DebuggingTools shows the agent the tools that pages have for their developers.
	DebuggingTools bool `json:"debuggingTools,omitempty"`
	// Front shows the agent which tab is in front.
	Front bool `json:"front,omitempty"`
	// Name is the user's for the profile of the browser.
	Name string `json:"name,omitempty"`
	// Debug makes the daemon's log verbose while this agent is connected.
	Debug bool `json:"debug,omitempty"`
}

const (
	// maxHello bounds a hello, in bytes: a snapshot in base64 and flags.
	maxHello = 512 << 10
	// maxSnapshot bounds a snapshot, in bytes.
	maxSnapshot = 256 << 10
	// maxText bounds a name or sentence of a hello that is shown.
	maxText = 400
)

var errNotHello = errors.New("the first line is not a hello of Pagewire")

// readHello reads a hello. If it is of another protocol, only the version is read.
func readHello(in *bufio.Reader) (h Hello, err error) {
	line, over, err := readLine(in, maxHello)
	if err != nil {
		return Hello{}, err
	}
	var head struct {
		Protocol int `json:"pagewire"`
		Version  string
	}
	if over || json.Unmarshal(line, &head) != nil || head.Protocol < 1 || len(head.Version) > maxText {
		return Hello{}, errNotHello
	}
	if head.Protocol != Protocol {
		return Hello{Protocol: head.Protocol, Version: head.Version}, nil
	}
	if json.Unmarshal(line, &h) != nil || len(h.Snapshot) > maxSnapshot || len(h.Error) > maxText {
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

// otherProtocol is the error of two builds that do not understand each other.
func otherProtocol(daemon, client Hello) string {
	return fmt.Sprintf("pagewire %.40q runs (protocol %d), and this is %.40q (protocol %d): end all agents, and start "+
		"them with one version", daemon.Version, daemon.Protocol, client.Version, client.Protocol)
}

// readLine returns the next line with its line feed, valid until the next read. Of a line with more than most bytes it
// returns the beginning, with a line feed, and over. At the end it fails with io.EOF.
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
