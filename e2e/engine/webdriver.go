package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// A classic speaks WebDriver (https://w3c.github.io/webdriver/): a request for each command, and
// one browser for each session.
type classic struct {
	server  string // http://127.0.0.1:1234
	session string
}

// post sends a command of the session, and unmarshals its answer into value unless that is nil.
func (c *classic) post(ctx context.Context, command string, p params, value any) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return c.request(ctx, http.MethodPost, command, body, value)
}

func (c *classic) request(ctx context.Context, method, command string, body []byte,
	value any) error {
	url := c.server + "/session"
	if c.session != "" {
		url += "/" + c.session + command
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if got.StatusCode != http.StatusOK {
		var why struct{ Error, Message string }
		_ = json.Unmarshal(answer.Value, &why)
		return fmt.Errorf("%s: %s: %s", command, why.Error, why.Message)
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, value)
}

func (c *classic) begin(ctx context.Context, capabilities params) error {
	var made struct{ SessionID string }
	err := c.post(ctx, "", params{"capabilities": params{"alwaysMatch": capabilities}}, &made)
	c.session = made.SessionID
	return err
}
