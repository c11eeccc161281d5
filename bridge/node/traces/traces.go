// Package traces exports the work of a node for agents as traces, by OpenTelemetry's OTLP over
// HTTP: agents' requests, the resulting calls of pages elsewhere, and the pages' answers.
//
// A span has the user's hash, the node and the method. The package never learns contents, URIs,
// tokens or names, and never delays a request: spans that the receiver does not accept are dropped.
package traces

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options configure the exporter.
type Options struct {
	// Endpoint is the receiver's URL, such as http://127.0.0.1:4318. Without a path, /v1/traces is
	// added.
	Endpoint string
	// Version is the node's version.
	Version string
	// Failed is called with each failed export. It is one function for the whole process.
	Failed func(error)
}

// Traces is an exporter. Its methods may be called concurrently.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	w3c      propagation.TraceContext
}

// stopTimeout bounds the export of the remaining spans at the end.
const stopTimeout = 2 * time.Second

// New returns an exporter. It connects at its first export. An error means that Endpoint is no URL.
func New(o Options) (*Traces, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%.100q is no URL of a receiver of traces: it is like "+
			"http://127.0.0.1:4318", o.Endpoint)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, err
	}
	about, err := resource.New(context.Background(), resource.WithAttributes(
		attribute.String("service.name", "pagewire-node"), attribute.String("service.version",
			o.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	if o.Failed != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(o.Failed))
	}
	t := &Traces{provider: sdk.NewTracerProvider(sdk.WithBatcher(exporter),
		sdk.WithResource(about))}
	t.tracer = t.provider.Tracer("github.com/pagewire/pagewire/bridge/node")
	return t, nil
}

// Close exports the remaining spans, for 2 s at most.
func (t *Traces) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// methods are the methods of HTTP and MCP that spans name. A client may send any other, which
// becomes _OTHER.
var methods = map[string]bool{"GET": true, "POST": true, "DELETE": true, "initialize": true,
	"ping":            true,
	"server/discover": true, "resources/list": true, "resources/read": true,
	"resources/templates/list": true,
	"resources/subscribe":      true, "resources/unsubscribe": true, "subscriptions/listen": true,
	"tools/list": true,
	"tools/call": true, "notifications/initialized": true, "notifications/cancelled": true}

func known(method string) string {
	if methods[method] {
		return method
	}
	return "_OTHER" // as in OpenTelemetry's conventions
}

// Agents makes a span of each request to a handler, in the trace of its traceparent.
func (t *Traces) Agents(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := t.w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		list := []attribute.KeyValue{attribute.String("http.request.method", known(r.Method))}
		if method := r.Header.Get("Mcp-Method"); method != "" {
			list = append(list, attribute.String("mcp.method.name", known(method)))
		}
		ctx, span := t.tracer.Start(ctx, "agent's request",
			trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(list...))
		defer span.End()
		r = r.WithContext(ctx)
		// For the other node, if the request is passed on.
		t.w3c.Inject(ctx, propagation.HeaderCarrier(r.Header))
		s := &status{ResponseWriter: w}
		next.ServeHTTP(s, r)
		span.SetAttributes(attribute.Int("http.response.status_code", s.code))
		if s.code >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}

// A status records the status of an answer.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	if s.code == 0 {
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Write(p []byte) (int, error) {
	if s.code == 0 {
		s.code = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Seen names the user of a request.
func (t *Traces) Seen(r *http.Request, user string) {
	trace.SpanFromContext(r.Context()).SetAttributes(ofUser(user))
}

func ofUser(user string) attribute.KeyValue { return attribute.String("pagewire.user", user) }

// Asks and Answers make Traces a node.Tracer.
func (t *Traces) Asks(ctx context.Context, call, user string) (carry string, done func(ok bool)) {
	ctx, done = t.begin(ctx, "page's "+call, trace.SpanKindClient, user)
	carrier := propagation.MapCarrier{}
	t.w3c.Inject(ctx, carrier)
	return carrier.Get("traceparent"), done
}

// Answers begins the span of a page's answer, below the span of the carried traceparent.
func (t *Traces) Answers(carry, call, user string) (done func(ok bool)) {
	ctx := t.w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": carry})
	_, done = t.begin(ctx, "answer to "+call, trace.SpanKindServer, user)
	return done
}

func (t *Traces) begin(ctx context.Context, name string, kind trace.SpanKind,
	user string) (context.Context,
	func(ok bool)) {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind),
		trace.WithAttributes(ofUser(user)))
	return ctx, func(ok bool) {
		if !ok {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
