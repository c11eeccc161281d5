package bridge

// subscribes reports whether subscriptions are on for a port.
func (e *Engine) subscribes(p *port) bool {
	return !e.opt.NoSubscriptions && !(restricts && p.forgoes)
}

// hides reports whether a port does not see a URI.
func (p *port) hides(uri string) bool { return restricts && p.sight != nil && !p.sight.Sees(uri) }

// hidesOwner reports whether a port does not see what is an owner's.
func (p *port) hidesOwner(o Owner) bool {
	return restricts && p.sight != nil && o != Owner{} && !p.sight.Permits(o)
}

// hidesTools says why no tool with an owner is visible to this port, or "".
func (p *port) hidesTools() (why string) {
	if restricts && p.sight != nil {
		why = p.sight.HidesTools()
	}
	return why
}

// hidesTool reports whether a tool is hidden from this port now.
func (p *port) hidesTool(t *Tool) bool { return restricts && p.hidesToolOf(t, t.owner()) }

// hidesToolOf reports whether a tool is hidden from this port while it is an owner's.
func (p *port) hidesToolOf(t *Tool, o Owner) bool {
	return t.Debugging && !p.debugging || p.hidesOwner(o) || o != Owner{} && p.hidesTools() != ""
}
