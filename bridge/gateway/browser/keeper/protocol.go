//go:build !js

package keeper

import (
	"encoding/json"
	"fmt"
	"io"
)

// What a keeper and the gateways say to each other, on its standard input and output and on its socket. All are frames,
// that is JSON texts which each end in a NUL byte.
//
//   - Who launches says options first, on standard input, and hears one started. It is a gateway from then on.
//   - Who connects to the socket says a hello first, and hears a welcome.
//   - A gateway may say a leave. Its end, with or without one, is the end of its connection. It hears notes.
//   - A client says and hears what the browser takes and gives. In place of a message of the browser that is too long
//     it hears an error, or {"method":METHOD,"dropped":{"begin":TEXT,"end":TEXT},"sessionId":ID}: how an event began
//     and ended.

// version is that of all of this. A keeper and a gateway of two versions do not speak: the browser is the keeper's
// until the last of its own has gone.
const version = 1

const (
	// maxFirst is the longest first frame, maxSaid that of a gateway later.
	maxFirst, maxSaid = 1 << 20, 4 << 10
	asGateway         = "gateway"
	asClient          = "client"
)

// options are what a browser is launched by.
type options struct {
	Version   int      `json:"version"`
	Hub       string   `json:"hub"`
	Window    bool     `json:"window,omitempty"`
	Open      []string `json:"open,omitempty"`
	Flags     []string `json:"flags,omitempty"`
	DebugPort string   `json:"debugPort,omitempty"`
	Inject    bool     `json:"inject,omitempty"`
	// Alone says that there is no directory for a socket.
	Alone bool `json:"alone,omitempty"`
}

// started is the answer to options. Failed says why nothing has been started.
type started struct {
	Failed string `json:"failed,omitempty"`
	// Name is the keeper's. Without one, there is no socket, and the one client's connection is what the keeper was
	// started with.
	Name string `json:"name,omitempty"`
	// Alone says why the keeper has no socket, though it should.
	Alone string `json:"alone,omitempty"`
	// URL is where the browser listens besides, if options say that it should.
	URL string `json:"url,omitempty"`
}

type hello struct {
	Keeper int    `json:"keeper"` // the version
	As     string `json:"as"`     // asGateway or asClient
}

type welcome struct {
	Keeper  int    `json:"keeper"`
	Refused string `json:"refused,omitempty"`
	Inject  bool   `json:"inject,omitempty"`
}

// leave says that its gateway ends, and needs no time to come back.
type leave struct {
	Leave bool `json:"leave"`
}

// note is what gateways are told.
type note struct {
	// Says is for people.
	Says string `json:"says,omitempty"`
	// Ended is how the browser has ended. What is left of it is removed then, until the connection ends.
	Ended Ending `json:"ended,omitempty"`
}

// An Ending is how a launched browser has ended.
type Ending string

const (
	// Closed: by its user, or since nobody needs it any more.
	Closed Ending = "closed"
	// Crashed: it has died, or its keeper has.
	Crashed Ending = "crashed"
)

func writeFrame(w io.Writer, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, 0))
	return err
}

func readFrame(from *frames, into any) error {
	frame, err := from.next()
	if err != nil {
		return err
	}
	return json.Unmarshal(frame[:len(frame)-1], into)
}

// otherVersion is what both ends say to one of another version.
func otherVersion(keeper, gateway int) string {
	return fmt.Sprintf("the launched browser's keeper speaks version %d and this gateway version %d: "+
		"end all agents, so that the next launches one of its own", keeper, gateway)
}
