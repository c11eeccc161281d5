package relay

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

func (r *pageSide) Hello(a link.About) error {
	r.about = cloned(a)
	if r.seat != "" {
		r.about.Tab = r.seat
	}
	r.peer.Welcome(r.seat)
	return nil
}

// cloned is a copy that does not keep the frame's memory.
func cloned(a link.About) link.About {
	for _, s := range []*string{&a.Epoch, &a.Tab, &a.Frame, &a.URL} {
		*s = strings.Clone(*s)
	}
	if a.Title != nil {
		title := strings.Clone((*a.Title)[:min(len(*a.Title), maxTitle)])
		a.Title = &title
	}
	return a
}

// maxTitle bounds the kept part of a page's title, in bytes.
const maxTitle = 1 << 10

// Register passes a descriptor on as the page wrote it, as SetTools does with tools.
func (r *pageSide) Register(resource bridge.Resource, descriptor string) error {
	uri := resource.URI
	if !(*Relay)(r).owns(uri) {
		return errors.New("it is not at the page's origin, " + r.origin)
	}
	o, known := r.offers[uri]
	if err := (*Relay)(r).count(int64(len(descriptor) - len(o.descriptor))); err != nil {
		return err
	}
	if r.offers == nil {
		r.offers = map[string]offer{}
	}
	if !known {
		r.order++
		o.order = r.order
		uri = strings.Clone(uri)
	}
	o.descriptor = strings.Clone(descriptor)
	r.offers[uri] = o
	for _, c := range r.cores {
		c.say(call("register").Str(descriptor))
	}
	return nil
}

func (r *pageSide) Unregister(uri string) {
	o, known := r.offers[uri]
	if !known {
		return
	}
	_ = (*Relay)(r).count(-int64(len(o.descriptor))) // less never fails
	delete(r.offers, uri)
	for _, c := range r.cores {
		c.say(call("unregister").Str(uri))
	}
}

func (r *pageSide) SetTools(_ []bridge.Tool, tools string) error {
	if err := (*Relay)(r).count(int64(len(tools) - len(r.tools))); err != nil {
		return err
	}
	r.tools = strings.Clone(tools)
	for _, c := range r.cores {
		if c.acts {
			c.say(call("setTools").Str(tools))
		}
	}
	return nil
}

// Touch notifies the cores that watch the URI, and those that wait for a read of it: the answer may
// be older than this.
func (r *pageSide) Touch(uri string, revision int64) {
	w := r.watches[uri]
	if w != nil {
		w.active = true
		w.revision = max(w.revision, revision)
	}
	begins := r.begins(uri)
	touches := func(other string) bool {
		return other == uri || begins != "" && strings.HasPrefix(other, begins)
	}
	var wide []*watch
	if begins != "" {
		for other, o := range r.watches {
			if o != w && touches(other) {
				o.revision = max(o.revision, revision)
				wide = append(wide, o)
			}
		}
	}
	for _, c := range r.cores {
		watches := func(o *watch) bool { return slices.Contains(o.cores, c) }
		if w != nil && watches(w) || slices.ContainsFunc(wide, watches) || c.reads(touches) {
			c.touch(uri, revision)
			r.opt.Touches.Add(1)
		}
	}
}

// begins is the common beginning of all URIs that a touch concerns if its URI is a template, or a
// resource that takes parameters. It is "" if the touch concerns only its URI. Cores know the exact
// set.
func (r *pageSide) begins(uri string) string {
	if head, _, template := strings.Cut(uri, "{"); template {
		return head
	}
	if strings.Contains(r.offers[uri].descriptor, `"uriSchema"`) {
		return uri + "?"
	}
	return ""
}

func (r *pageSide) Note(a link.About) {
	changed := wire.Text(`{`)
	if a.Title != nil {
		r.about.Title = cloned(a).Title
		changed = changed.Raw(`"title":`).Str(*r.about.Title)
	}
	if a.Focused > 0 {
		r.about.Focused = a.Focused
		changed = changed.Next().Raw(`"focused":`).Int(int(a.Focused))
	}
	for _, c := range r.cores {
		c.say(call("note").Bytes(changed).Raw("}"))
	}
}

func (r *pageSide) Bye(gone bool) {
	r.bye = strconv.FormatBool(gone)
	for _, c := range r.cores {
		c.say(call("bye").Raw(r.bye))
	}
}
