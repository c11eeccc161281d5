package bridge

import "github.com/pagewire/pagewire/bridge/wire"

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
	text, next, err := e.registry.Page(e.result(r).Raw(key), templates, cursor, e.opt.PageSize)
	if err != nil {
		return refused(r.modern, "", err)
	}
	if next != "" {
		text = text.Raw(`,"nextCursor":`).Str(next)
	}
	if r.modern {
		text = text.Raw("," + cacheable)
	}
	e.send(r.port, e.end(r, text))
	return nil
}
