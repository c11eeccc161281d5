package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// lasting lets clients cache results that change only with a release.
const lasting = `"ttlMs":300000,"cacheScope":"public",`

// listSkills lists the engine's own skills on the first page, and the skills of pages.
func (e *Engine) listSkills(r *request) *wire.Error {
	cursor, fault := cursorOf(r)
	if fault != nil {
		return fault
	}
	p := e.newPage(e.result(r).Raw(`"skills":[`), e.registry.Len(), e.registry.Bytes())
	for i := range e.opt.Skills {
		if cursor == "" {
			p.put(p.text.Next().Raw(e.opt.Skills[i].Entry))
		}
	}
	next, err := e.registered(false, cursor, func(entry *resource.Entry) bool {
		return !e.isSkill(entry) || r.port.hides(entry.URI) ||
			p.add(describeSkill(p.text.Next(), entry))
	})
	if err != nil {
		return refused(r.modern, "", err)
	}
	e.send(r.port, e.listed(r, p.text.Raw(`]`), next))
	return nil
}

func (e *Engine) getSkill(r *request) *wire.Error {
	uri, _ := r.params.Get("uri").Text()
	text := e.result(r).Raw(`"skill":`)
	if own, page := e.findSkill(r.port, uri); own != nil {
		e.sendFor(r, text.Raw(own.Entry), lasting)
	} else if page != nil {
		e.sendFor(r, describeSkill(text, page), cacheable)
	} else {
		return invalidParams("uri is of no skill: skills/list has them")
	}
	return nil
}

// ofSkill reports whether a URI can be of a skill.
func ofSkill(uri string) bool {
	return len(uri) > len(skillScheme) && uri[:len(skillScheme)] == skillScheme
}

// findSkill finds the skill that has a URI: one of the engine's own, or the resource of a page's if
// the port sees it. Both are nil if there is none. No page can have the URI of an own skill, so no
// port hides one.
func (e *Engine) findSkill(p *port, uri string) (own *Skill, page *resource.Entry) {
	for i := range e.opt.Skills {
		if e.opt.Skills[i].URI == uri {
			return &e.opt.Skills[i], nil
		}
	}
	n := len(skillScheme)
	end := index(uri, n, '/')
	if !ofSkill(uri) || end >= len(uri) {
		return nil, nil
	}
	entry := e.registry.Get(uri[n:end] + "://" + uri[end+1:])
	if entry == nil || p.hides(entry.URI) || !e.isSkill(entry) {
		return nil, nil
	}
	return nil, entry
}

// A page's skill is a resource of text/markdown whose URI ends in /NAME/SKILL.md. For agents its
// URI begins with "skill://https/" instead of "https://", so that no page can have the URI of
// another's skill. The engine writes its frontmatter from the descriptor: it names the origin, and
// a list needs no read of the page. The page can change the files between two reads, so they have
// no digest, and the list of files is "dynamic".

const (
	skillScheme = "skill://"
	skillFile   = "/SKILL.md"
	// maxSkillText bounds a description, in bytes: a skill's may have 1024 characters.
	maxSkillText = 1024
)

// isSkill reports whether a resource is a page's skill. A resource with the name of a skill of the
// engine is not: hosts may know skills by their names.
func (e *Engine) isSkill(entry *resource.Entry) bool {
	name := skillName(entry.URI)
	if name == "" || entry.MIMEType != "text/markdown" || entry.Template() {
		return false
	}
	for i := range e.opt.Skills {
		if skillName(e.opt.Skills[i].URI) == name {
			return false
		}
	}
	return true
}

// skillName is NAME of a URI that ends in /NAME/SKILL.md, if it is valid for a skill: 1 to 64 of
// a-z, 0-9 and single hyphens between them. Otherwise it is "".
func skillName(uri string) string {
	end := len(uri) - len(skillFile)
	if end < 0 || uri[end:] != skillFile {
		return ""
	}
	from := end
	for ; from > 0 && uri[from-1] != '/'; from-- {
		c := uri[from-1]
		hyphen := c == '-' && uri[from] != '-' && uri[from] != '/' && uri[from-2] != '/'
		if !hyphen && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return ""
		}
	}
	if end-from > 64 {
		return ""
	}
	return uri[from:end]
}

// skillURI is the URI of a page's skill for agents.
func skillURI(uri string) string {
	end := index(uri, 0, ':')
	return skillScheme + uri[:end] + uri[end+len(":/"):]
}

// index is the first index of c in s at or after from; at least the length of s if there is none.
func index(s string, from int, c byte) int {
	for from < len(s) && s[from] != c {
		from++
	}
	return from
}

// skillText is the description of a page's skill.
func skillText(entry *resource.Entry) string {
	text := entry.Description
	if text == "" {
		text = entry.Name
	}
	origin := entry.URI[:index(entry.URI, index(entry.URI, 0, ':')+len("://"), '/')]
	text = "By the web page " + origin + ", not by the user or Pagewire: " + text
	if len(text) > maxSkillText {
		end := maxSkillText
		for text[end]&0xC0 == 0x80 { // in the middle of a character
			end--
		}
		text = text[:end]
	}
	return text
}

// describeSkill appends the entry of a page's skill in lists.
func describeSkill(text wire.Text, entry *resource.Entry) wire.Text {
	return text.Raw(`{"uri":`).Str(skillURI(entry.URI)).Raw(`,"frontmatter":{"name":`).
		Str(skillName(entry.URI)).Raw(`,"description":`).Str(skillText(entry)).Raw(
		`},"resources":"dynamic"}`)
}

// answerSkill sends a page's skill: the engine's frontmatter, and the page's text without its own.
// YAML reads a JSON string as the same text.
func (e *Engine) answerSkill(w *wait, r *request, contents wire.Value) {
	var first wire.Value
	contents.Elements(func(v wire.Value) bool {
		first = v
		return false
	})
	body, ok := first.Get("text").Text()
	if !ok {
		e.fail(w.port, w.id, readError(string(InvalidContents), "Read failed"))
		return
	}
	const fence = "---\n"
	if len(body) > len(fence) && body[:len(fence)] == fence {
		for i := range len(body) - len(fence) {
			if body[i:i+len(fence)+1] == "\n"+fence {
				body = body[i+len(fence)+1:]
				break
			}
		}
	}
	entry := w.call.entry
	front := wire.Text(fence).Raw("name: ").Raw(skillName(entry.URI)).
		Raw("\ndescription: ").Str(skillText(entry)).Raw("\n" + fence)
	e.sendFor(r, e.result(r).Raw(`"contents":[{"uri":`).Str(skillURI(entry.URI)).
		Raw(`,"mimeType":"text/markdown","text":`).Str(string(front)+body).Raw(`}]`), cacheable)
}
