package gateway

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// Some clients fail on messages that MCP allows. Changes that cost no client anything are made for
// all (tools.Names and agentTools), other changes only for the client that fails.

// wantsWhole reports whether a client reads priorities as integers. In Codex a fractional priority
// fails the whole list, read or call.
func wantsWhole(names ...string) bool {
	return strings.Contains(strings.ToLower(strings.Join(names, " ")), "codex")
}

// wholePriorities returns the message with the priority in each annotations object rounded to 0 or
// 1.
func wholePriorities(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"priority"`)) {
		return message
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.UseNumber() // revisions and ids stay as they are written
	if decoder.Decode(&v) != nil {
		return message
	}
	roundPriorities(v)
	return []byte(live.Line(v))
}

func roundPriorities(v any) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			roundPriorities(element)
		}
	case map[string]any:
		for key, member := range v {
			switch key {
			case "structuredContent", "_meta", "inputSchema", "outputSchema": // a page's data
			case "annotations":
				annotations, _ := member.(map[string]any)
				if n, ok := annotations["priority"].(json.Number); ok {
					priority, _ := n.Float64()
					annotations["priority"] = int(math.Round(priority))
				}
			default:
				roundPriorities(member)
			}
		}
	}
}
