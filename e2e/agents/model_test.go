package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A step is the model's next action: it calls the tool whose name ends with `tool`, or says
// something.
type step struct {
	before func() // changes the page meanwhile
	tool   string
	args   map[string]any
	say    string
	// with gives the arguments for the request that asks for the step, if they depend on it.
	with func(body string) map[string]any
}

// A model answers Anthropic Messages, OpenAI Responses, Chat Completions and Gemini by a script. A
// request that has the results of n tools gets step n.
type model struct {
	*httptest.Server
	t     *testing.T
	steps []step

	mu     sync.Mutex
	begun  int // steps whose before was called
	bodies []string
	other  []string // paths of the other requests
}

func newModel(t *testing.T, steps ...step) *model {
	m := &model{t: t, steps: steps}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

type request struct {
	Stream   bool
	Tools    []json.RawMessage
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	Input    json.RawMessage
	Contents []struct {
		Parts []struct{ FunctionResponse json.RawMessage }
	}
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	var q request
	kind := kindOf(r.URL.Path)
	if kind == nil || json.Unmarshal(body, &q) != nil {
		m.note(&m.other, r.Method+" "+r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w,
			`{"object":"list","data":[{"id":"scripted","object":"model","created":1,"owned_by":"test"}],"models":[],"totalTokens":1}`)
		return
	}
	names := toolNames(q.Tools)
	next := step{say: "A title"} // side questions, for example for a title, have no tools
	if len(names) == 0 {
		m.note(&m.other, r.URL.Path+" without tools")
	} else {
		m.note(&m.bodies, string(body))
		next = m.next(q.results(string(body)))
		if next.with != nil {
			next.args = next.with(string(body))
		}
	}
	name := ""
	if next.tool != "" {
		if name = nameOf(names, next.tool); name == "" {
			next = step{say: "There is no tool " + next.tool + " among " + strings.Join(names, " ")}
		}
	}
	whole, stream := kind(name, next)
	if !q.Stream && !strings.Contains(r.URL.Path, "stream") {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, encode(whole))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range stream {
		if name, ok := data["type"].(string); ok {
			fmt.Fprintf(w, "event: %s\n", name)
		}
		fmt.Fprintf(w, "data: %s\n\n", encode(data))
	}
	if strings.HasSuffix(r.URL.Path, "/chat/completions") {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

func (m *model) note(list *[]string, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*list = append(*list, text)
}

func (m *model) next(results int) step {
	m.mu.Lock()
	defer m.mu.Unlock()
	if results >= len(m.steps) {
		return step{say: "DONE"}
	}
	s := m.steps[results]
	if m.begun <= results {
		m.begun = results + 1
		if s.before != nil {
			s.before()
		}
	}
	return s
}

func (m *model) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.bodies) == 0 {
		return ""
	}
	return m.bodies[len(m.bodies)-1]
}

func (q *request) results(body string) (n int) {
	n += strings.Count(body, `_call_output"`)
	for _, message := range q.Messages {
		if message.Role == "tool" {
			n++
		}
		n += strings.Count(string(message.Content), `"tool_result"`)
	}
	for _, c := range q.Contents {
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				n++
			}
		}
	}
	return n
}

// toolNames returns the names of a request's tools, with a name space as "space|name".
func toolNames(tools []json.RawMessage) (names []string) {
	for _, raw := range tools {
		var t struct {
			Type, Name           string
			Function             struct{ Name string }
			Tools                []struct{ Name string }
			FunctionDeclarations []struct{ Name string }
		}
		if json.Unmarshal(raw, &t) != nil {
			continue
		}
		for _, inner := range t.Tools {
			names = append(names, t.Name+"|"+inner.Name)
		}
		for _, inner := range t.FunctionDeclarations {
			names = append(names, inner.Name)
		}
		if len(t.Tools) == 0 && t.Name+t.Function.Name != "" {
			names = append(names, t.Name+t.Function.Name)
		}
	}
	return names
}

func nameOf(names []string, suffix string) string {
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			return name
		}
	}
	return ""
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

type object = map[string]any

// A dialect makes an answer that calls a tool or says something: as one object, and as events named
// by their type.
type dialect func(tool string, s step) (whole object, stream []object)

func kindOf(path string) dialect {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return anthropic
	case strings.HasSuffix(path, "/responses"):
		return responses
	case strings.HasSuffix(path, "/chat/completions"):
		return completions
	case strings.HasSuffix(strings.ToLower(path), "generatecontent"):
		return gemini
	}
	return nil
}

func anthropic(tool string, s step) (whole object, stream []object) {
	block, empty, reason := object{"type": "text", "text": s.say},
		object{"type": "text", "text": ""}, "end_turn"
	delta := object{"type": "text_delta", "text": s.say}
	if tool != "" {
		id := "toolu_" + unique()
		block, reason = object{"type": "tool_use", "id": id, "name": tool, "input": s.arguments()},
			"tool_use"
		empty = object{"type": "tool_use", "id": id, "name": tool, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": encode(s.arguments())}
	}
	message := func(content []any, reason any) object {
		return object{"id": "msg_" + unique(), "type": "message", "role": "assistant",
			"model":       "scripted",
			"stop_reason": reason, "content": content,
			"usage": object{"input_tokens": 1, "output_tokens": 1}}
	}
	return message([]any{block}, reason), []object{
		{"type": "message_start", "message": message([]any{}, nil)},
		{"type": "content_block_start", "index": 0, "content_block": empty},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": reason},
			"usage": object{"output_tokens": 1}},
		{"type": "message_stop"},
	}
}

func responses(tool string, s step) (whole object, stream []object) {
	item := object{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": s.say, "annotations": []any{}}}}
	if tool != "" {
		space, name, spaced := strings.Cut(tool, "|")
		if !spaced {
			name = tool
		}
		item = object{"type": "function_call", "id": "fc_" + unique(), "call_id": "call_" +
			unique(), "name": name,
			"arguments": encode(s.arguments()), "status": "completed"}
		if spaced {
			item["namespace"] = space
		}
	}
	id := "resp_" + unique()
	whole = object{"id": id, "object": "response", "created_at": 1, "status": "completed",
		"model":               "scripted",
		"output":              []any{item},
		"parallel_tool_calls": false, "tool_choice": "auto", "tools": []any{}, "error": nil,
		"metadata": object{},
		"usage": object{"input_tokens": 1, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens":         1,
			"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 2}}
	say := func(name string, members object) {
		members["type"], members["sequence_number"] = name, len(stream)
		stream = append(stream, members)
	}
	say("response.created",
		object{"response": object{"id": id, "object": "response", "created_at": 1,
			"status": "in_progress", "model": "scripted", "output": []any{}}})
	say("response.output_item.added", object{"output_index": 0, "item": item})
	if tool == "" {
		say("response.output_text.delta",
			object{"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": s.say})
	}
	say("response.output_item.done", object{"output_index": 0, "item": item})
	say("response.completed", object{"response": whole})
	return whole, stream
}

func completions(tool string, s step) (whole object, stream []object) {
	message, reason := object{"role": "assistant", "content": s.say}, "stop"
	if tool != "" {
		call := object{"index": 0, "id": "call_" + unique(), "type": "function",
			"function": object{"name": tool, "arguments": encode(s.arguments())}}
		message, reason = object{"role": "assistant", "content": nil, "tool_calls": []any{call}},
			"tool_calls"
	}
	id := "chatcmpl-" + unique() // some programs keep one message for each id
	answer := func(kind string, choice object) object {
		whole := object{"id": id, "object": kind, "created": 1, "model": "scripted",
			"choices": []any{choice}}
		if choice["finish_reason"] != nil { // some clients skip the rest of a chunk that has usage
			whole["usage"] = object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
		}
		return whole
	}
	return answer("chat.completion",
			object{"index": 0, "message": message, "finish_reason": reason}), []object{
			answer("chat.completion.chunk",
				object{"index": 0, "delta": message, "finish_reason": nil}),
			answer("chat.completion.chunk",
				object{"index": 0, "delta": object{}, "finish_reason": reason}),
		}
}

func gemini(tool string, s step) (whole object, stream []object) {
	part := object{"text": s.say}
	if tool != "" {
		part = object{"functionCall": object{"name": tool, "args": s.arguments()}}
	}
	whole = object{"candidates": []any{object{"index": 0,
		"content":      object{"role": "model", "parts": []any{part}},
		"finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1,
			"totalTokenCount": 2},
		"modelVersion": "scripted"}
	return whole, []object{whole}
}

func (s step) arguments() map[string]any {
	if s.args == nil {
		return map[string]any{}
	}
	return s.args
}

var uniques atomic.Int64

// unique returns a different text at each call.
func unique() string { return fmt.Sprint("x", uniques.Add(1)) }
