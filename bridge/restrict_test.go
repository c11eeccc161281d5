//go:build !js

package bridge_test

import (
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/script"
)

// nativeConversations has the conversations about features that a page's core lacks: see
// restrict.go.
const nativeConversations = "testdata/native"

func TestNativeConversations(t *testing.T) {
	script.EachIn(t, nativeConversations,
		func(t *testing.T, file string) { script.Play(t, file, converse) })
}

func TestAllThatTheNativeEngineSaysIsWellFormed(t *testing.T) {
	wellFormed(t, nativeConversations, 100)
}
