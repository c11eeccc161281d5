package main

import (
	"testing"

	"github.com/pagewire/pagewire/demo/reference"
)

func TestReference(t *testing.T) { reference.Check(t, "../../../demo/docs/cli.md", commands()) }
