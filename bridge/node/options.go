package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Options configure a node.
type Options struct {
	// Version is the version that agents, pages and other nodes see. Default "0".
	Version string
	// Bus configures the connection to the other nodes. The node sets Changed and Lost itself.
	Bus bus.Options
	// Space begins the names of all subjects. Default "pagewire".
	Space string
	// URL is where other nodes reach this node's HTTP; "" if they do not. InsecureHTTP lets this
	// node use URLs of others that have no TLS and are not on loopback.
	URL          string
	InsecureHTTP bool
	// Interval is the pause between two beats, and between two sums of the sent frames. Default 1
	// s.
	Interval time.Duration
	// Idle is how long a user's gateway stays after its last use by an agent. Default 5 minutes.
	Idle time.Duration
	// Limits bound the messages of one page. OfferedBytes bounds the offers of all pages of the
	// node, UserBytes those of one user's pages. Default link.Limits', 1 GiB and 64 MiB.
	Limits                  link.Limits
	OfferedBytes, UserBytes int64
	// WaitingBytes bounds the queues for agents that do not read, over all agents of the node. The
	// same bound holds for the queues of messages from other nodes, over all users' gateways.
	// Default 512 MiB.
	//
	// Why does a node have one bound for waiting messages, besides those of each gateway? 20,000
	// gateways with 256 MiB each are no bound. Above 512 MiB for all, the session with the most
	// waiting bytes ends, by a separate goroutine: two gateways that hold their locks might wait
	// for each other.
	WaitingBytes int64
	// Pages bounds the pages of the node, and UserPages the pages of one user there. Default
	// 100,000 and 256.
	Pages, UserPages int
	// UserMessages bounds the messages a second that one user's pages cost on the bus, with bursts
	// of five times as many. Above that the node pauses reading from these pages. Default 2,000.
	UserMessages int
	// Users bounds the users with agents at the node. OtherUsers bounds the users for whom the
	// agents of one user act there, besides that user. Default 20,000 and 1,000.
	Users, OtherUsers int
	// Tracer follows the requests of agents. Default none.
	Tracer Tracer
	// Gateway configures the gateways of users.
	Gateway gateway.Options
	// Log receives the log. Default none.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Version, o.Space = cmp.Or(o.Version, "0"), cmp.Or(o.Space, "pagewire")
	o.Interval, o.Idle = cmp.Or(o.Interval, time.Second), cmp.Or(o.Idle, 5*time.Minute)
	o.OfferedBytes, o.UserBytes = cmp.Or(o.OfferedBytes, 1<<30), cmp.Or(o.UserBytes, 64<<20)
	o.WaitingBytes = cmp.Or(o.WaitingBytes, 512<<20)
	o.Pages, o.UserPages = cmp.Or(o.Pages, 100_000), cmp.Or(o.UserPages, 256)
	o.UserMessages = cmp.Or(o.UserMessages, defaultPace)
	o.Users, o.OtherUsers = cmp.Or(o.Users, 20_000), cmp.Or(o.OtherUsers, 1000)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	// A gateway's log would have the URLs of users' pages.
	o.Gateway.Version, o.Gateway.Log = o.Version, nil
	return o
}

// defaultPace is the default of Options.UserMessages. A page that touches at its greatest rate
// sends 100 messages a second to each node that watches it.
const defaultPace = 2_000

// ErrFull is the error of Attach and Reader above a limit, and ErrClosed after Close.
var (
	ErrFull   = errors.New("this node takes no more")
	ErrClosed = errors.New("this node goes away")
)

// spaceShape is the shape of Options.Space. With a wildcard a node would get the messages of all
// fleets of its cluster.
var spaceShape = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,7}$`)

// CheckURL says what is wrong with a node's URL: agents' tokens are sent to it. It must be https,
// or on loopback, unless insecure says that nobody else is on the nodes' network. Each node checks
// its own URL and those in beats.
func CheckURL(text string, insecure bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("%.100q is no URL of a node: it is like https://10.0.0.7:8443", text)
	case u.Scheme == "http" && !insecure && !weborigin.IsLoopback(text):
		return fmt.Errorf(
			"at %.100q other nodes would pass tokens on without TLS: use https, with "+
				"--tls-cert and --tls-key, or say --insecure-http if nobody else is on the network between "+
				"nodes", text)
	}
	return nil
}
