package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/pagewire/pagewire/js/build/commands"
)

// bill writes the parts list (SBOM): pagewire, the files that it consists of, and what of others is in each.
func (m *maker) bill(all parts) ([]byte, error) {
	root := cdx.Component{BOMRef: "pagewire", Type: cdx.ComponentTypeApplication, Name: "pagewire", Version: m.version,
		PackageURL: "pkg:npm/pagewire@" + m.version, Licenses: &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}}}
	bom := cdx.NewBOM()
	bom.SerialNumber = m.serial()
	bom.Metadata = &cdx.Metadata{Timestamp: m.at.Format(time.RFC3339), Component: &root, Properties: &[]cdx.Property{
		{Name: "pagewire:commit", Value: m.commit}, {Name: "pagewire:core", Value: m.core}}}

	var components []cdx.Component
	var dependencies []cdx.Dependency
	files := slices.Sorted(maps.Keys(all))
	modules := map[string]module{}
	refs := make([]string, 0, len(files))
	for _, file := range files {
		component := cdx.Component{BOMRef: "file:" + file, Type: cdx.ComponentTypeFile, Name: file, Version: m.version}
		if _, is := commands.Programs[file]; is {
			component.Type = cdx.ComponentTypeApplication
		}
		components = append(components, component)
		refs = append(refs, component.BOMRef)
		in := []string{}
		if file == "pagewire" {
			for _, its := range files {
				if its != file && inProgram(its) {
					in = append(in, "file:"+its)
				}
			}
		}
		for _, its := range sorted(all[file]) {
			modules[its.purl()] = its
			in = append(in, its.purl())
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: component.BOMRef, Dependencies: &in})
	}
	dependencies = append(dependencies, cdx.Dependency{Ref: root.BOMRef, Dependencies: &refs})
	for _, its := range sorted(modules) {
		component, err := componentOf(its)
		if err != nil {
			return nil, err
		}
		components = append(components, component)
	}
	bom.Components, bom.Dependencies = &components, &dependencies

	var out bytes.Buffer
	to := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	err := to.EncodeVersion(bom, cdx.SpecVersion1_6)
	return out.Bytes(), err
}

// serial is a UUID (version 8) of what the list is of, so that the same release has the same.
func (m *maker) serial() string {
	sum := sha256.Sum256([]byte("pagewire " + m.version + " " + m.commit))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func componentOf(m module) (cdx.Component, error) {
	component := cdx.Component{BOMRef: m.purl(), Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version,
		PackageURL: m.purl()}
	if encoded, is := strings.CutPrefix(m.integrity, "sha512-"); is {
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return component, fmt.Errorf("js/package-lock.json: integrity of %s: %w", m.path, err)
		}
		component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(sum)}}
	}
	return component, nil
}
