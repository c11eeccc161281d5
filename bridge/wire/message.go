package wire

// A Message is one decoded JSON-RPC 2.0 message, as views into the bytes that it came from.
type Message struct {
	// ID is the id of a request or of a response: an integer or a string, verbatim. It is absent in
	// a notification.
	ID Value
	// Method is "" in a response.
	Method string
	// Params is an object, or absent.
	Params Value
}

// Request reports whether m must be answered.
func (m *Message) Request() bool { return m.Method != "" && len(m.ID) > 0 }

// Decode reads one message, nested at most depth arrays and objects deep. If it fails, it still
// returns the id, if it could read it, for the error answer. The code is ParseError for text that
// is not JSON, InvalidRequest for JSON that is not a JSON-RPC 2.0 message, InvalidParams for params
// that are not an object. Params of null are absent.
func Decode(text []byte, depth int) (m Message, failure *Error) {
	s := scanner{text: text, depth: depth}
	s.space()
	if s.peek() != '{' {
		if _, err := Parse(text, depth); err != nil {
			return m, err.(*Error)
		}
		return m, &Error{Code: InvalidRequest, Message: "Invalid request: not an object"}
	}
	var version, id, method, result, errObj Value
	err := s.object(func(key Value) error {
		value, err := s.take()
		if err != nil {
			return err
		}
		switch string(key.unescaped()) {
		case `"jsonrpc"`:
			version = value
		case `"id"`:
			id = value
		case `"method"`:
			method = value
		case `"params"`:
			m.Params = value
		case `"result"`:
			result = value
		case `"error"`:
			errObj = value
		}
		return nil
	})
	if id.Integer() || id.Kind() == String {
		m.ID = id
	}
	if err != nil {
		return m, err.(*Error)
	}
	if s.space(); s.pos != len(text) {
		return m, s.fail("text after the message")
	}
	m.Method = methodName(method)
	invalid := ""
	switch {
	case !version.Is("2.0"):
		invalid = `jsonrpc must be "2.0"`
	case len(id) > 0 && len(m.ID) == 0:
		invalid = "id must be a string or an integer"
	case len(method) > 0 && m.Method == "":
		invalid = "method must be a string that is not empty"
	case len(method) > 0 && len(result)+len(errObj) > 0:
		invalid = "both a request and a response"
	case len(method) == 0 && (len(result) > 0) == (len(errObj) > 0):
		invalid = "neither a request nor a response"
	case len(method) == 0 && len(id) == 0 && len(result) > 0:
		invalid = "a response without id"
	}
	if invalid != "" {
		return m, &Error{Code: InvalidRequest, Message: "Invalid request: " + invalid}
	}
	switch m.Params.Kind() {
	case Absent, Object:
	case Null: // some clients write each member that they do not set as null
		m.Params = nil
	default:
		return m, &Error{Code: InvalidParams, Message: "Invalid params: params must be an object"}
	}
	return m, nil
}

// PeekBytes is how much of either end of a message that cannot be read is looked at for its id.
const PeekBytes = 512

// PeekID looks for the id in the beginning of a message that is too large to be read. It returns an
// absent Value if the id is not within text.
func PeekID(text []byte) (id Value) {
	s := scanner{text: text, depth: 64}
	s.space()
	if s.peek() != '{' {
		return nil
	}
	// The scan fails at the end of the text at the latest; the members before that are valid.
	_ = s.object(func(key Value) error {
		value, err := s.take()
		if err == nil && key.Is("id") &&
			(value.Kind() == String || value.Integer() && s.pos < len(text)) {
			// a number may go on
			id = value
		}
		return err
	})
	return id
}

// LastID looks for the id among the last members of a message that cannot be read: MCP's SDKs for
// TypeScript and Python write it last. It returns an absent Value if the id is further than
// PeekBytes from the message's end, or before a member that is.
func LastID(text []byte) (id Value) {
	text = text[max(0, len(text)-PeekBytes):]
	for i, c := range text {
		if c != ',' {
			continue
		}
		// Behind a comma that is not between the message's own members, the rest is no object.
		members := append([]byte{'{'}, text[i+1:]...)
		if v, err := Parse(members, 64); err == nil {
			if id = v.Get("id"); id.Kind() == String || id.Integer() {
				return id
			}
			return nil
		}
	}
	return nil
}

// methodName returns the text of v, without allocating for the methods that MCP agents send all the
// time.
func methodName(v Value) string {
	if v.Kind() != String {
		return ""
	}
	switch name := v[1 : len(v)-1]; string(name) {
	case ResourcesRead:
		return ResourcesRead
	case ResourcesList:
		return ResourcesList
	case ResourcesSubscribe:
		return ResourcesSubscribe
	case ResourcesUnsubscribe:
		return ResourcesUnsubscribe
	case Listen:
		return Listen
	case Cancelled:
		return Cancelled
	case Ping:
		return Ping
	case ToolsCall:
		return ToolsCall
	}
	name, _ := v.Text()
	return name
}
