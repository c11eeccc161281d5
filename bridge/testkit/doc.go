//go:build !js

// Package testkit holds what the tests of several packages need: waiting for a condition, a log that can be awaited,
// an agent and a connection. It lies here and not in bridge/internal since the tests of e2e need it too.
//
// It never measures the machine: whatever is waited for has the one ceiling Patience, which is there to end a test that
// would hang, and is far above what a busy machine takes. It makes no promise to anybody but Pagewire's own tests.
package testkit
