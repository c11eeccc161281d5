package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/pagewire/pagewire/bridge/wire"
)

// Names are the page's names of a tool's arguments, where agents have others: some APIs of models
// refuse a request for a name such as "user[email]". The key is the path of a property in the
// page's schema, with the name that a call may use at its end.
type Names map[string]string

// separator is between the parts of a path. A name that has it is a path of its own, and harms its
// page.
const separator = "\x00"

// A property is one of a schema's, by both of its names.
type property struct {
	page, agent string
	schema      wire.Value
}

var (
	accepted = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	strange  = regexp.MustCompile(`[^a-zA-Z0-9_.-]+`)
)

// rename gives properties other names where models refuse the page's. One that collides gets a hash
// of the page's.
func rename(list []property, taken map[string]int) {
	wanted := map[string]int{}
	for i := range list {
		if p := &list[i]; !accepted.MatchString(p.page) {
			p.agent = cut(strings.Trim(strange.ReplaceAllString(p.page, "_"), "_"), 64)
			wanted[p.agent]++
		}
	}
	for i := range list {
		p := &list[i]
		_, used := taken[p.agent]
		if !accepted.MatchString(p.page) && (used || p.agent == "" || wanted[p.agent] > 1) {
			sum := sha256.Sum256([]byte(p.page))
			p.agent = cut(p.agent, 55) + "_" + hex.EncodeToString(sum[:4])
		}
	}
}

func (n Names) add(path string, p property) {
	n[path+separator+"properties"+separator+p.page] = p.page
	n[path+separator+"properties"+separator+p.agent] = p.page
}

// Arguments returns arguments with the page's names. Names of the page, and unknown ones, stay.
func (n Names) Arguments(args []byte) []byte {
	if n == nil {
		return args
	}
	return n.write(nil, args, "")
}

func (n Names) write(t wire.Text, v wire.Value, path string) wire.Text {
	o := object{t: t}
	switch v.Kind() {
	case wire.Array:
		o.Raw("[")
		v.Elements(func(e wire.Value) bool {
			o.t = n.write(o.next().t, e, path+separator+"items")
			return true
		})
		return o.Raw("]").t
	case wire.Object:
		o.Raw("{")
		v.Members(func(key, e wire.Value) bool {
			name, _ := key.Text()
			if page, ok := n[path+separator+"properties"+separator+name]; ok {
				name = page
			}
			o.t = n.write(o.key(name).t, e, path+separator+"properties"+separator+name)
			return true
		})
		return o.Raw("}").t
	}
	return t.Bytes(v)
}

// Adopt adds earlier names of properties that there still are, since clients keep lists. A name
// that means another property now stays with it. earlier gets the names that are new to it, up to a
// bound.
func (n Names) Adopt(earlier Names, room *int) {
	for key, page := range n {
		if name := key[strings.LastIndex(key, separator)+1:]; name != page &&
			earlier[key] != page && *room > 0 {
			earlier[key] = page
			*room--
		}
	}
	for key, page := range earlier {
		if own := key[:strings.LastIndex(key, separator)+1] + page; n[key] == "" && n[own] == page {
			n[key] = page
		}
	}
}
