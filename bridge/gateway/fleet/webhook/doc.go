// Package webhook delivers events to URLs of subscribers: the webhook part of MCP Events (SEP-3415).
//
// A subscription is a principal, a URL, a name and arguments. The store (store.go) keeps it, encrypted, in a bucket of
// JetStream that all nodes share. One node at a time delivers for a user (owners.go): one POST an event, signed as
// Standard Webhooks say (sign.go), over a client that connects to public addresses only (client.go). An event is
// delivered at least once, in order within its subscription, and is given up after some attempts (deliver.go).
//
// The package never decides which events there are, or who may see them: its Source does. It never logs a URL's path, a
// secret or contents, and tells subscribers nothing that an endpoint answers.
package webhook
