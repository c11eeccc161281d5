// Package webhook delivers events to URLs of subscribers: the webhook part of MCP Events
// (SEP-3415).
//
// A subscription is a principal, a URL, a name and arguments. It is stored, encrypted (record.go),
// in a bucket of JetStream that all nodes share. One node at a time delivers for a user
// (owners.go): one POST an event, signed by Standard Webhooks (sign.go), over a client that
// connects to public addresses only (client.go). An event is delivered at least once, in order
// within its subscription, and is given up after some attempts (deliver.go).
//
// The package never decides which events there are, or who may see them: its Feed does. It never
// logs a URL's path, a secret or contents, and passes no text of an endpoint's answer to
// subscribers.
//
// The Service's lock guards all users and their deliveries. It is not held while the store or an
// endpoint is asked. A gateway calls wakes.add with its own lock held, so wakes has one apart.
package webhook
