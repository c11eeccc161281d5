package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

func (e *Engine) listResources(r *request) *wire.Error { return e.listing(r, `"resources":`, false) }

func (e *Engine) listTemplates(r *request) *wire.Error {
	return e.listing(r, `"resourceTemplates":`, true)
}

func (e *Engine) listing(r *request, key string, templates bool) *wire.Error {
	cursor := ""
	if v := r.params.Get("cursor"); len(v) > 0 {
		var ok bool
		if cursor, ok = v.Text(); !ok {
			return invalidParams("cursor must be a string")
		}
	}
	text := e.result(r).Raw(key).Raw(`[`)
	first := len(text)
	next, err := e.registry.Page(templates, cursor, e.opt.PageSize, func(entry *resource.Entry) {
		if len(text) > first {
			text = text.Raw(`,`)
		}
		if templates {
			text = describe(text, "uriTemplate", entry.Pattern, &entry.Resource)
		} else {
			text = describe(text, "uri", entry.URI, &entry.Resource)
		}
	})
	if err != nil {
		return refused(r.modern, "", err)
	}
	e.send(r.port, e.listed(r, text.Raw(`]`), next))
	return nil
}

// listed completes the answer that holds one page of a list.
func (e *Engine) listed(r *request, text wire.Text, next string) wire.Text {
	if next != "" {
		text = text.Raw(`,"nextCursor":`).Str(next)
	}
	if r.modern {
		text = text.Raw("," + cacheable)
	}
	return e.end(r, text)
}
