package main

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"

	"github.com/pagewire/pagewire/bridge/gateway/assets"
)

// bill writes the parts list (SBOM): pagewire, the files that it consists of, and what of others is in each.
func (p plan) bill(all parts, core string) error {
	root := cdx.Component{BOMRef: "pagewire", Type: cdx.ComponentTypeApplication, Name: "pagewire", Version: p.version,
		PackageURL: "pkg:npm/pagewire@" + p.version, Licenses: &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}}}
	bom := cdx.NewBOM()
	// The same release has the same number.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(root.PackageURL+" "+p.commit)).URN()
	bom.Metadata = &cdx.Metadata{Timestamp: p.at.Format(time.RFC3339), Component: &root, Properties: &[]cdx.Property{
		{Name: "pagewire:commit", Value: p.commit}, {Name: "pagewire:core", Value: core}}}

	var components []cdx.Component
	var dependencies []cdx.Dependency
	depends := func(ref string, on []string) {
		dependencies = append(dependencies, cdx.Dependency{Ref: ref, Dependencies: &on})
	}
	files := slices.Sorted(maps.Keys(all))
	refs := []string{}
	for _, file := range files {
		component := cdx.Component{BOMRef: "file:" + file, Type: cdx.ComponentTypeFile, Name: file, Version: p.version}
		if isProgram(file) {
			component.Type = cdx.ComponentTypeApplication
		}
		components = append(components, component)
		refs = append(refs, component.BOMRef)
		in := []string{}
		for _, its := range files {
			if file == "pagewire" && embedded(its) {
				in = append(in, "file:"+its)
			}
		}
		for _, its := range all.of(func(name string) bool { return name == file }) {
			in = append(in, its.purl())
		}
		depends(component.BOMRef, in)
	}
	depends(root.BOMRef, refs)
	for _, its := range all.of(func(string) bool { return true }) {
		components = append(components, cdx.Component{BOMRef: its.purl(), Type: cdx.ComponentTypeLibrary, Name: its.path,
			Version: its.version, PackageURL: its.purl()})
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	var out bytes.Buffer
	to := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	err := to.EncodeVersion(bom, cdx.SpecVersion1_6)
	return errors.Join(err, write("release/pagewire-"+p.version+".cdx.json", out.Bytes()))
}

// embedded says which files are in the program pagewire: those that a site hosts, and the inspector.
func embedded(file string) bool {
	return file == "pagewire.inject.js" || slices.Contains(assets.Names, file) || strings.HasPrefix(file, "inspector/")
}
