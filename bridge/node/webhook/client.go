package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"
)

// ClientOptions are exceptions from the rules for endpoints, and replacements in tests.
type ClientOptions struct {
	// Allow are addresses that are allowed although they are not public. Default none.
	Allow []netip.Prefix
	// Roots are the authorities of endpoints' certificates. Default the system's.
	Roots *x509.CertPool
	// Resolver finds the addresses of hosts. Default net.DefaultResolver.
	Resolver *net.Resolver
	// Timeout bounds one attempt. Default 10 s.
	Timeout time.Duration
}

// A Client posts to endpoints. It follows no redirect, and uses no proxies, cookies or passwords.
// It is safe for concurrent use.
type Client struct {
	o ClientOptions
	// guard allows a connection to an address that is public by IANA's registries, or one of the
	// exceptions. Of IPv6 only the range for global unicast is public: all others reach this
	// network, or nothing.
	guard *ssrf.Guardian
	http  *http.Client
}

const (
	// maxURL bounds a URL, in bytes.
	maxURL = 2048
	// Bounds for the answer of an endpoint.
	headerTimeout, maxHeader, maxAnswer = 8 * time.Second, 64 << 10, 16 << 10
	// maxBody bounds a posted body, in bytes.
	maxBody = 256 << 10
	// perHost bounds the requests under way to one host.
	perHost = 8
)

// Categories of failures at an endpoint. A subscriber learns only these.
const (
	failedRefused   = "connection_refused"
	failedTimeout   = "timeout"
	failedTLS       = "tls_error"
	failed4xx       = "http_4xx" // and each other status that is neither 2xx nor 5xx
	failed5xx       = "http_5xx"
	failedChallenge = "challenge_failed"
)

// errAddress says that a host has an address that is not public.
var errAddress = errors.New("delivery.url: its host has an address that is not public")

// NewClient returns a Client.
func NewClient(o ClientOptions) *Client {
	o.Resolver, o.Timeout = cmp.Or(o.Resolver, net.DefaultResolver),
		cmp.Or(o.Timeout, 10*time.Second)
	c := &Client{o: o, guard: ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(o.Allow...),
		ssrf.WithAllowedV6Prefixes(o.Allow...))}
	// Right before each connection.
	dialer := net.Dialer{Resolver: o.Resolver, Control: c.guard.Safe}
	c.http = &http.Client{
		Timeout: o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
		Transport: &http.Transport{ // without Proxy: it uses none
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: headerTimeout, ResponseHeaderTimeout: headerTimeout,
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true, MaxIdleConns: 64, IdleConnTimeout: 30 * time.Second,
		},
	}
	return c
}

// parseURL checks the text of a URL. It looks nothing up.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return nil, fmt.Errorf("delivery.url has %d bytes; the limit is %d", len(text), maxURL)
	case err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("delivery.url must be an absolute URL of https")
	case u.User != nil:
		return nil, errors.New("delivery.url must have no user name or password")
	case strings.Contains(text, "#"):
		return nil, errors.New("delivery.url must have no fragment")
	}
	host := hostOf(u)
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err = strconv.ParseUint(last, 0, 64)
	_, none := netip.ParseAddr(host)
	// Some resolvers take it for an address.
	if none != nil && (err == nil || strings.Trim(last, "0123456789") == "") {
		return nil, errors.New("delivery.url: its host must be a name or an address in its usual " +
			"form")
	}
	return u, nil
}

// hostOf returns the one name of a URL's host, however it is written and whichever port is named:
// limits count by it.
func hostOf(u *url.URL) string {
	host := u.Hostname()
	// net/http does the same before it connects.
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	}
	return host
}

// Check looks up the addresses of a URL's host, and connects to none. All of them must be allowed:
// a name with a public and a private address is no endpoint's. An error is errAddress, or the
// lookup's.
func (c *Client) Check(ctx context.Context, u *url.URL) error {
	addrs, err := c.o.Resolver.LookupNetIP(ctx, "ip", hostOf(u))
	for _, a := range addrs {
		if c.guard.SafeAddr(a.Unmap()) != nil {
			return errAddress
		}
	}
	return err
}

// post posts a body once. failed is a category, "" for an answer of 2xx. status is 0 if there was
// no answer.
func (c *Client) post(ctx context.Context, to, subscription, id string, body []byte,
	secrets []Secret) (status int, answer []byte, failed string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, nil, failedRefused
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Pagewire")
	r.Header.Set("X-MCP-Subscription-Id", subscription)
	sign(r.Header, id, time.Now(), body, secrets)
	response, err := c.http.Do(r)
	if err != nil {
		return 0, nil, category(err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return response.StatusCode, nil, category(err)
	}
	switch response.StatusCode / 100 {
	case 2:
	case 5:
		failed = failed5xx
	default:
		failed = failed4xx
	}
	return response.StatusCode, answer, failed
}

func category(err error) string {
	var timeout net.Error
	var verification *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded):
		return failedTimeout
	case errors.As(err, &verification) || errors.As(err, &alert) || errors.As(err, &record):
		return failedTLS
	}
	return failedRefused
}

// verify lets the endpoint prove that it wants the events: it must answer with a challenge that it
// cannot guess. failed is a category, "" for the right answer.
func (c *Client) verify(ctx context.Context, to, subscription string,
	secret Secret) (failed string) {
	nonce := rand.Text() + rand.Text()
	body, err := json.Marshal(map[string]string{"type": "verification", "challenge": nonce})
	if err != nil {
		return failedChallenge
	}
	status, answer, failed := c.post(ctx, to, subscription, "msg_verification_"+rand.Text(), body,
		[]Secret{secret})
	if failed != "" {
		if status/100 == 3 {
			return failedChallenge
		}
		return failed
	}
	var echo struct {
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(bytes.TrimPrefix(answer, []byte("\ufeff")), &echo) != nil ||
		subtle.ConstantTimeCompare([]byte(echo.Challenge), []byte(nonce)) != 1 {
		return failedChallenge
	}
	return ""
}
