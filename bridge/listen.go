package bridge

import "github.com/pagewire/pagewire/bridge/wire"

func (p *port) listening(id wire.Value) *listen {
	for _, l := range p.listens { // at most Limits.Listens
		if l.id.Equal(id) {
			return l
		}
	}
	return nil
}

// acknowledge begins the stream of a listen. It calls the host before the agent gets the message: a
// page whose core is elsewhere reports changes only of watched resources, and its next change may
// come right after the acknowledgement.
func (e *Engine) acknowledge(l *listen, uris []string) {
	p := l.port
	p.listens = append(p.listens, l)
	e.stats.Listens++
	for _, uri := range uris { // one that is hidden may be seen later, so update looks
		l.subs = append(l.subs, e.watch(p, l, uri))
	}
	text := l.begin(e.begin(), wire.Acknowledged).Raw(`,"notifications":{`)
	separator := ""
	for kind, i := range l.lists {
		if i.wanted {
			text = text.Raw(separator).Raw(`"`).Raw(listNames[kind].flag).Raw(`":true`)
			separator = ","
		}
	}
	if len(uris) > 0 {
		text = text.Raw(separator).Raw(`"resourceSubscriptions":[`)
		for _, uri := range uris {
			text = text.Next().Str(uri)
		}
		text = text.Raw(`]`)
		separator = ","
	}
	e.send(p, text.Raw(`}}}`))
	if separator == "" {
		e.complete(l)
		e.unlisten(l)
	}
}

// unlisten removes a listen without a message.
func (e *Engine) unlisten(l *listen) {
	for _, s := range l.subs {
		e.unsubscribe(s)
	}
	l.port.listens = remove(l.port.listens, l)
	e.stats.Listens--
}

// complete sends the result of a listen.
func (e *Engine) complete(l *listen) {
	text := e.begin().Result(l.id).Raw(`{"resultType":"complete",`)
	e.send(l.port, l.meta(text).Raw(`}}`))
}

// closeListen ends a listen from the server's side: the result, then the cancellation. The other
// order makes the TypeScript client close with an error.
func (e *Engine) closeListen(l *listen) {
	e.complete(l)
	text := e.begin().Notification(wire.Cancelled).Raw(`{"requestId":`)
	e.send(l.port, text.Bytes(l.id).Raw(`}}`))
	e.unlisten(l)
}

// begin appends the beginning of a notification on the stream; a comma and more members, or "}}",
// complete it.
func (l *listen) begin(text wire.Text, method string) wire.Text {
	return l.meta(text.Notification(method).Raw(`{`))
}

func (l *listen) meta(text wire.Text) wire.Text { return subscriptionMeta(text, l.id) }

func subscriptionMeta(text wire.Text, id wire.Value) wire.Text {
	return text.Raw(`"_meta":{"` + wire.MetaSubscriptionID + `":`).Bytes(id).Raw(`}`)
}
