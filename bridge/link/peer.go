package link

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// answerDelay is how long a call that is not urgent may wait for another one to share its frame, in
// ms. The end of a call mostly shares the frame of the next read.
const answerDelay = 10

// A Peer is the core's end of one link. It is not safe for concurrent use: its owner's lock guards
// it. The Core's methods may call it again.
type Peer struct {
	core  Core
	build string
	limit Limits

	// begun is set by the page's hello, and over by close. Between the two the page's calls count;
	// after that nothing is sent, except the frame that is waiting.
	begun, over bool
	starts      bool // the page says when it starts a tool; its hello says so
	heard       int  // frames of the page
	// earn is what the page may still send. Each frame and each of its calls is taken from it.
	earn allowance
	now  bridge.Time // the latest that a caller has given; never goes back

	// What the next Take gives. out has calls for the page, a JSON array without its end; it is
	// empty if there are none. urgent means that one of them cannot wait; owes, that the page's
	// last message is not acknowledged, since the time since. Take empties all of it.
	out    wire.Text
	urgent bool
	owes   bool
	since  bridge.Time

	reports []string // sentences to the page's developer, each once; at most maxReports
	// resources are those that the core has taken, with the bytes of their descriptors; bytes is
	// the sum. Neither is ever above the limits.
	resources map[string]int
	bytes     int

	// asked are the calls between ask and their end. Of these, running counts those that the page
	// has and has not answered, at most limit.Asked, and waiting has the ones that are not sent
	// yet, in order; it may also have some that have ended.
	asked   map[uint32]*ask
	lastAsk uint32
	running int
	waiting []*ask
	// crossed are the last calls that ended without an answer, which may be on its way: it costs
	// the page nothing, once. ended counts them, and is where the next one goes.
	crossed [64]uint32
	ended   int
}

// An ask is a read or a tool call, until End.
type ask struct {
	id   uint32
	text wire.Text // the call, until it is sent
	done func(Answer)
	tool *ToolHandler // nil for a read

	// sent, then began (of a tool), then answered: each is set once, and in this order.
	sent, began, answered bool
}

// New returns the core's end of a link that begins at now. build is the version of Pagewire that is
// sent to the page.
func New(now bridge.Time, core Core, build string, limits Limits) *Peer {
	p := &Peer{core: core, build: build, limit: limits.withDefaults(), resources: map[string]int{},
		asked: map[uint32]*ask{}}
	p.earn = allowance{left: p.limit.CallsBurst, filled: now}
	return p
}

// gone is the answer of a page that has gone.
var gone = Answer{Failure: bridge.ReadFailed, Detail: "the page went away before it answered",
	Gone: true}

// Close ends the link. Open asks are answered with a failure.
func (p *Peer) Close() { p.close(gone) }

// close is Close with the answer to open asks.
func (p *Peer) close(told Answer) {
	if p.over {
		return
	}
	p.over = true
	ids := make([]uint32, 0, len(p.asked))
	for id := range p.asked {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if a := p.asked[id]; a != nil {
			delete(p.asked, id)
			if !a.answered {
				told.Began = a.began
				a.done(told)
			}
		}
	}
	p.waiting = nil
}

// Receive takes a frame of the page: it is Parse and Apply.
func (p *Peer) Receive(now bridge.Time, frame []byte) error {
	return p.Apply(now, Parse(frame, p.limit))
}

// Apply takes a frame. An error is an *Ended: the link is over, Take has the last frame for the
// page, and then the transport must be closed.
func (p *Peer) Apply(now bridge.Time, f Frame) error {
	if p.over {
		return nil
	}
	p.heard++
	if reason := p.apply(now, f); reason != "" {
		return p.Refuse(reason)
	}
	return nil
}

// Refuse ends the link as Apply does, for a reason of the transport, such as a frame that is too
// long.
func (p *Peer) Refuse(reason string) error {
	if p.over {
		return nil
	}
	p.say("refused", nil).add(quote(reason)).close()
	p.urgent = true
	p.close(Answer{Failure: bridge.ReadFailed, Detail: "the page was let go: " + reason})
	return &Ended{reason}
}

func (p *Peer) apply(now bridge.Time, f Frame) (reason string) {
	if !p.begun && f.bytes > p.limit.HelloBytes {
		return above("a frame has "+wire.Itoa(f.bytes)+" bytes", p.limit.HelloBytes, "")
	}
	p.owe(now)
	p.now = now
	tooMany := above("it says more calls than it may", p.limit.Calls, " a second")
	cost := 1 // for the frame, which may be empty
	if f.answered == nil || !p.expects(f.answered.call) {
		cost += f.bytes >> 10 // only an expected answer costs nothing for its length
	}
	if !p.earn.spend(now, cost, &p.limit) {
		return tooMany
	}
	if !p.begun && len(f.steps) == 0 && f.bad == "" {
		return "the first frame is not a hello"
	}
	for _, s := range f.steps {
		switch {
		case p.over:
			return "" // the core has ended the link
		case p.begun == s.first:
			if !p.begun {
				return "the first frame is not a hello"
			}
			return noCall
		case !p.earn.spend(now, 1, &p.limit):
			return tooMany
		}
		if reason := s.do(p); reason != "" {
			return reason
		}
	}
	return f.bad
}

// expects reports whether an answer to a call may come: it is open, or it ended while the answer
// was on its way.
func (p *Peer) expects(call uint32) bool {
	if p.findAsk(call) != nil {
		return true
	}
	i := slices.Index(p.crossed[:], call)
	if i < 0 || call == 0 {
		return false
	}
	p.crossed[i] = 0
	return true
}

// hello handles the page's first call.
func (p *Peer) hello(version int64, build string, a About) (reason string) {
	if version != Version {
		return "the page's Pagewire " + build + " speaks version " + wire.Itoa(int(version)) +
			" of the link, and Pagewire " +
			p.build + " version " + wire.Itoa(Version) + ": update the older of the two"
	}
	p.begun, p.starts = true, a.Starts
	if err := p.core.Hello(a); err != nil {
		return err.Error()
	}
	return ""
}

// Welcome answers the page's hello. tab, if it is not "", is the page's new tab id.
func (p *Peer) Welcome(tab string) {
	about := wire.Text(`{`)
	if tab != "" {
		about = about.Raw(`"tab":`).Str(tab)
	}
	if p.starts {
		about = about.Next().Raw(`"now":`).Int(int(p.now))
	}
	p.say("hello", wire.Text{}.Int(Version)).add(quote(p.build)).add(about.Raw(`}`)).close()
	p.urgent = true
}

// register handles a decoded descriptor, or its error.
func (p *Peer) register(r bridge.Resource, descriptor string, err error) {
	bytes := len(descriptor)
	refuse := func(why string) { p.Report("resource refused: " + r.URI + ": " + why) }
	before, known := p.resources[r.URI]
	switch {
	case err != nil:
		refuse(err.Error())
	case !known && len(p.resources) >= p.limit.Resources:
		refuse(above("the page has too many", p.limit.Resources, ""))
	case p.bytes-before+bytes > p.limit.ResourcesBytes:
		refuse(above("the page's descriptors are too long together", p.limit.ResourcesBytes,
			" bytes"))
	default:
		if err := p.core.Register(r, descriptor); err != nil {
			refuse(err.Error())
			return
		}
		if r.Mended != "" {
			p.Report("the resource " + r.URI + " differs for agents: " + r.Mended)
		}
		p.resources[r.URI] = bytes
		p.bytes += bytes - before
	}
}

func (p *Peer) unregister(uri string) {
	p.bytes -= p.resources[uri]
	delete(p.resources, uri)
	p.core.Unregister(uri)
}

// setTools passes on tools; written is their JSON text. leftOut, if it is not nil, says why others
// are left out.
func (p *Peer) setTools(tools []bridge.Tool, written string, leftOut error) {
	if leftOut != nil {
		p.refuseTools(leftOut)
	}
	if err := p.core.SetTools(tools, written); err != nil {
		p.refuseTools(err)
	}
}

func (p *Peer) refuseTools(err error) { p.Report("tools refused: " + err.Error()) }

// Held is the size of the page's descriptors, in bytes.
func (p *Peer) Held() int { return p.bytes }

// URIBytes is the page's Limits.URIBytes.
func (p *Peer) URIBytes() int { return p.limit.URIBytes }

// Heard is the number of frames that the page has sent.
func (p *Peer) Heard() int { return p.heard }
