package driver_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/driver"
)

// finding's URI takes a parameter: aip://findings?id=abc.
const finding = `{"uri":"aip://findings","name":"Findings","uriSchema":{"type":"object",
	"properties":{"id":{"type":"string"}},"required":["id"]}}`

// A server is the engine's host. The engine calls its methods, one at a time, while the driver's
// lock is held.
type server struct {
	engine      *bridge.Engine
	driver      *driver.Driver
	subscribers map[string]map[bridge.PortID]bool // the store, by URI
	findings    map[string]string
	out         []byte
}

// Subscribe asks for consent. A Failure would refuse.
func (s *server) Subscribe(call bridge.CallID, port bridge.PortID, uri string) {
	if s.subscribers[uri] == nil {
		s.subscribers[uri] = map[bridge.PortID]bool{}
	}
	s.subscribers[uri][port] = true
	s.engine.Complete(s.driver.Now(), call, bridge.Result{})
}

// Unsubscribe is called for each subscription that ends. With call 0 the session has ended, and
// nobody waits.
func (s *server) Unsubscribe(call bridge.CallID, port bridge.PortID, uri string) {
	delete(s.subscribers[uri], port)
	if call != 0 {
		s.engine.Complete(s.driver.Now(), call, bridge.Result{})
	}
}

// set changes a finding, and notifies its subscribers.
func (s *server) set(id, text string) {
	s.driver.Lock()
	defer s.driver.Unlock()
	s.findings[id] = text
	uri := "aip://findings?id=" + id
	s.engine.Seal(uri) // a read under way may have the state before
	for port := range s.subscribers[uri] {
		s.engine.Notify(s.driver.Now(), port, uri)
	}
}

// Read gets the parameters of the URI as the schema types them.
func (s *server) Read(call bridge.CallID, r bridge.Request) {
	var params struct{ ID string }
	var result bridge.Result
	if err := json.Unmarshal([]byte(r.Params), &params); err != nil {
		result.Failure = bridge.ReadFailed
	} else {
		result.Contents, _ = json.Marshal([]map[string]string{{"uri": r.URI, "text": s.findings[params.ID]}})
	}
	s.engine.Complete(s.driver.Now(), call, result)
}

func (s *server) End(bridge.CallID)    {}
func (s *server) Watched(string, bool) {}

// Send keeps a message until the lock is released: writing may block.
func (s *server) Send(_ bridge.PortID, m bridge.Message) { s.out = append(m.AppendTo(s.out), '\n') }

func (s *server) leave() (then func()) {
	out := s.out
	s.out = nil
	return func() { fmt.Print(string(out)) }
}

// A server with a store of subscriptions of its own. A server of several agents opens a port for
// each session, and closes it at the session's end: the engine then calls Unsubscribe for each of
// its subscriptions.
func Example_subscriptions() {
	s := &server{subscribers: map[string]map[bridge.PortID]bool{}, findings: map[string]string{"abc": "new"}}
	s.engine = bridge.New(bridge.Options{Name: "findings", Rule: bridge.Rule{Any: true}}, s)
	s.driver = driver.New(s.engine, s.leave)
	resource, err := bridge.DecodeResource([]byte(finding))
	if err != nil {
		log.Fatal(err)
	}
	const agent = bridge.PortID(1)
	s.driver.Lock()
	if err := s.engine.Register(s.driver.Now(), resource); err != nil {
		log.Fatal(err)
	}
	if err := s.engine.Open(s.driver.Now(), agent); err != nil {
		log.Fatal(err)
	}
	s.driver.Unlock()
	receive := func(message string) {
		s.driver.Lock()
		defer s.driver.Unlock()
		if err := s.engine.Receive(s.driver.Now(), agent, []byte(message)); err != nil {
			log.Fatal(err)
		}
	}
	receive(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}`)
	receive(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	receive(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"aip://findings?id=abc"}}`)
	s.set("abc", "seen") // something has happened in the application
	receive(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"aip://findings?id=abc"}}`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true,"listChanged":true}},"serverInfo":{"name":"findings","version":"0"}}}
	// {"jsonrpc":"2.0","id":2,"result":{}}
	// {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"aip://findings?id=abc"}}
	// {"jsonrpc":"2.0","id":3,"result":{"contents":[{"text":"seen","uri":"aip://findings?id=abc"}]}}
}
