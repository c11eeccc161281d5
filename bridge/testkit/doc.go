// Package testkit holds the tools of several packages' tests: waiting for a condition, a log that
// can be awaited, an agent and a connection. It is not in bridge/internal, because the tests of e2e
// need it too.
//
// It never measures the machine. Every wait has the one ceiling Patience, which only ends a test
// that would hang, and is far above the needs of a busy machine. Only Pagewire's own tests may rely
// on it.
package testkit
