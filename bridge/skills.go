package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// A Skill is a text for models that an engine serves (SEP-2640): skills/list and skills/get describe it, and
// resources/read gives it. It never changes while the engine lives. The core of a page has none: see restrict.go.
type Skill struct {
	// URI is that of its SKILL.md: skill://AUTHORITY/NAME/SKILL.md.
	URI string
	// Entry is the JSON text of the skill in lists: uri, frontmatter and resources.
	Entry string
	// Contents is the JSON text of MCP's contents of the file, an array.
	Contents string
}

// lasting lets clients cache what changes only with a release.
const lasting = `"ttlMs":300000,"cacheScope":"public",`

// skillsMethod is the row of one of the skills' methods.
func (e *Engine) skillsMethod(name string) method {
	has := len(e.opt.Skills) > 0
	switch name {
	case wire.SkillsList:
		return method{(*Engine).listSkills, has, has}
	case wire.SkillsGet:
		return method{(*Engine).getSkill, has, has}
	}
	return method{}
}

// listSkills answers with all skills on one page.
func (e *Engine) listSkills(r *request) *wire.Error {
	if cursor, err := cursorOf(r); err != nil {
		return err
	} else if cursor != "" {
		return invalidParams("cursor is of no list of skills")
	}
	text := e.result(r).Raw(`"skills":[`)
	for i, s := range e.opt.Skills {
		if i > 0 {
			text = text.Raw(`,`)
		}
		text = text.Raw(s.Entry)
	}
	e.sendFor(r, text.Raw(`]`), lasting)
	return nil
}

func (e *Engine) getSkill(r *request) *wire.Error {
	uri, _ := r.params.Get("uri").Text()
	s := e.skill(uri)
	if s == nil {
		return invalidParams("uri is of no skill: skills/list has them")
	}
	e.sendFor(r, e.result(r).Raw(`"skill":`).Raw(s.Entry), lasting)
	return nil
}

// readSkill answers resources/read of a skill's file, and reports whether the URI is of one. No page can have it, so no
// port hides it.
func (e *Engine) readSkill(r *request) bool {
	uri, _ := r.params.Get("uri").Text()
	s := e.skill(uri)
	if s != nil {
		e.sendFor(r, e.result(r).Raw(`"contents":`).Raw(s.Contents), cacheable)
	}
	return s != nil
}

// sendFor completes an answer that modern clients may cache.
func (e *Engine) sendFor(r *request, text wire.Text, cache string) {
	if r.modern {
		text = text.Raw(`,`).Raw(cache)
	}
	e.send(r.port, e.end(r, text))
}

// skill finds a skill by its URI; nil if there is none.
func (e *Engine) skill(uri string) *Skill {
	for i := range e.opt.Skills {
		if e.opt.Skills[i].URI == uri {
			return &e.opt.Skills[i]
		}
	}
	return nil
}
