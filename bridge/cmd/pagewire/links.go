package main

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

// An install link has a client ask its user whether it may add our server. It holds the entry that config would write,
// and never a token: links are logged and passed on.

// cursorLink is Cursor's: the entry alone, in base64.
func cursorLink(e entry) string {
	return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + serverName + "&config=" +
		escapeComponent(base64.StdEncoding.EncodeToString([]byte(compactJSON(e))))
}

// vscodeLink is VS Code's: the entry with its name, as JSON.
func vscodeLink(e entry) string {
	e = append(entry{{"name", serverName}}, e...)
	return "vscode:mcp/install?" + escapeComponent(compactJSON(e))
}

// escapeComponent is JavaScript's encodeURIComponent, as far as our entries need it.
func escapeComponent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// compactJSON is an entry on one line.
func compactJSON(e entry) string { return jsonValue(e, "", "", "") }

func hasLink(c client) bool { return c.link != nil }

// printLink prints the client's install link, with this binary as the command.
func (c *configuration) printLink(server part) error {
	_, err := fmt.Fprintln(c.cmd.OutOrStdout(), c.client.link(server.Value.(entry)))
	return err
}
