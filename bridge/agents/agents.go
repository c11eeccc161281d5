package agents

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

const (
	// WriteTimeout is the time after which a stream is cut if its client accepts no data.
	WriteTimeout = 30 * time.Second
	// BodyTimeout bounds the time in which a client sends the body of a request.
	BodyTimeout = 30 * time.Second
)

// oneLine returns a message with spaces for its line ends, which frame messages in stdio and in
// event streams. JSON allows line ends between tokens. A page's answer is passed on as the page
// wrote it, and must not begin a new line.
func oneLine(message []byte) []byte {
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		return message
	}
	clean := bytes.Clone(message)
	for i, c := range clean {
		if c == '\n' || c == '\r' {
			clean[i] = ' '
		}
	}
	return clean
}

// Error codes of JSON-RPC and MCP for errors at HTTP's level.
const (
	codeInvalidRequest = -32600
	codeNotFound       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeHeaderMismatch = -32020
	codeMissing        = -32021 // the client lacks a required capability
	codeVersion        = -32022
)

// refuse answers with a JSON-RPC error. id is empty if the request has no readable one.
func refuse(w http.ResponseWriter, status int, id bridge.JSON, code int, message string, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(failure(id, code, message, data))
}

// failure is the text of a JSON-RPC error. data is a value of this package, or nil.
func failure(id bridge.JSON, code int, message string, data any) []byte {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	// It cannot fail: data can be marshalled, and ids have been parsed.
	text, _ := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Error   failure         `json:"error"`
	}{"2.0", json.RawMessage(id), failure{code, message, data}})
	return text
}

type reason struct {
	Reason string `json:"reason"`
}

// endedUnanswered is the answer to an open request whose session or access token ends.
const endedUnanswered = "The session ended before there was an answer"

// eventsStream is the method whose answer is a stream until the client goes.
const eventsStream = "events/stream"

// notification is the beginning of each of the engine's notifications.
var notification = []byte(`{"jsonrpc":"2.0","method":`)

// parse reads a message of an agent. Its id must be text or a whole number.
func parse(text []byte) (m bridge.Incoming, ok bool) {
	m, ok = bridge.DecodeMessage(text)
	if _, text := m.ID.Text(); len(m.ID) > 0 && !text && !m.ID.Integer() {
		ok = false
	}
	return m, ok
}

const metaVersion = "io.modelcontextprotocol/protocolVersion"

// claims reports whether a message claims to be of the modern era.
func claims(m bridge.Incoming) bool { return len(m.Params.Get("_meta").Get(metaVersion)) > 0 }

// legacyVersions are the versions that the header of a legacy request may name, oldest first. No
// session negotiates 2025-03-26. But a request without the header means it, and some clients name
// it in every session.
var legacyVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// Modern reports whether a Mcp-Protocol-Version header names a version of the modern era, known or
// not: versions are dates, and compare as text.
func Modern(version string) bool { return version > legacyVersions[len(legacyVersions)-1] }

// LimitBody bounds the time in which a client sends the body of a request. It must be called before
// a refusal: net/http reads the rest of the body before it sends an answer.
func LimitBody(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if r.ContentLength != 0 {
		// A writer without deadlines has no network.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
	}
}

// ReadBody reads the body of a request without a byte order mark, and ends LimitBody's limit. If
// the body is longer than most bytes, it returns the beginning, with a *http.MaxBytesError.
func ReadBody(w http.ResponseWriter, r *http.Request, most int) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(most)))
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	return body, err
}

// accepts reports whether a client's Accept header includes a media type. Without the header a
// client accepts all types. The most specific range that has the type decides, and with a weight
// (q) of 0 it refuses (RFC 9110, section 12.5.1).
func accepts(r *http.Request, kind string) bool {
	all := r.Header.Values("Accept")
	if len(all) == 0 {
		return true
	}
	group, _, _ := strings.Cut(kind, "/")
	ranges := []string{"*/*", group + "/*", kind}
	best, accepted := -1, false
	for part := range strings.SplitSeq(strings.Join(all, ","), ",") {
		name, parameters, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if at := slices.Index(ranges, name); at >= 0 && at >= best {
			best, accepted = at, !noWeight.MatchString(parameters)
		}
	}
	return accepted
}

// noWeight matches the parameters of a media range that a client refuses.
var noWeight = regexp.MustCompile(`(?i)(?:^|;)\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)`)
