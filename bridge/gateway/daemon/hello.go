//go:build !js

package daemon

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Protocol is the version of what a client and a daemon say to each other besides MCP. It grows when an older one could
// not understand what is said.
const Protocol = 1

// What a client connects as.
const (
	// AsAgent is an agent's pipe: MCP follows, a message on each line.
	AsAgent = "agent"
	// AsCommand is a person's command, such as pagewire ls: MCP follows, and the daemon does not stay for it.
	AsCommand = "command"
	// AsHTTP is a process of this user that asks by HTTP, for which the daemon does not stay either.
	AsHTTP = "http"
	// AsBrowser is an agent's process that has a share in the launched browser: what follows is between the two packages
	// that know of that.
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
	// PID is the process's: an agent's hooks are known by it.
	PID int `json:"pid,omitempty"`

	// A client's:

	As string `json:"as,omitempty"`
	// Flags are those that belong to an agent.
	Flags Flags `json:"flags,omitzero"`
	// Snapshot is what an earlier daemon has said of the agent's session, as that said it.
	Snapshot []byte `json:"snapshot,omitempty"`

	// A daemon's:

	// Error is why it does not serve this client, in a sentence.
	Error string `json:"error,omitempty"`
	// Retires says that it ends, and that the client is to connect again.
	Retires bool `json:"retires,omitempty"`
	// Outdated says that the client is of a newer build, and is to start another daemon.
	Outdated bool `json:"outdated,omitempty"`
}

// Flags are an agent's own: they decide what this agent sees, whichever agent was first.
type Flags struct {
	AllowOrigins []string `json:"allowOrigins,omitempty"`
	DenyOrigins  []string `json:"denyOrigins,omitempty"`
	OnlyOrigins  []string `json:"onlyOrigins,omitempty"`
	Reminders    string   `json:"reminders,omitempty"`
	Chrome       string   `json:"chrome,omitempty"`
	Inject       bool     `json:"inject,omitempty"`
	// Debug has the daemon's log be verbose while this agent is connected.
	Debug bool `json:"debug,omitempty"`
}

const (
	// maxHello bounds a hello, in bytes: a snapshot in base64 and flags.
	maxHello = 512 << 10
	// maxSnapshot bounds a snapshot, in bytes.
	maxSnapshot = 256 << 10
	// maxText bounds a name or sentence in a hello that is shown.
	maxText = 400
)

var errNotHello = errors.New("the first line is not a hello of Pagewire")

// readHello reads a hello. Of one of another protocol only the version is looked at.
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

// otherProtocol says that two builds do not understand each other.
func otherProtocol(daemon, client Hello) string {
	return fmt.Sprintf("pagewire %.40q runs (protocol %d), and this is %.40q (protocol %d): end all agents, and start "+
		"them with one version", daemon.Version, daemon.Protocol, client.Version, client.Protocol)
}

// readLine returns the next line with its line feed, valid until the next read. Of a line of more than most bytes it
// returns the beginning, with a line feed, and over. At the end of in it fails with io.EOF, also beside a last line
// without a line feed.
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
