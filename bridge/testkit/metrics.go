package testkit

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Metrics returns the metrics of a program at an address, or "". The token is the contents of its
// file; "" for a program that asks for none.
func Metrics(addr, token string) string {
	r, err := http.NewRequest(http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return ""
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	answer, err := (&http.Client{Timeout: 2 * time.Second}).Do(r)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}
