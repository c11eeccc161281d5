package process

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// An authority signs certificates for loopback, into a directory.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.make(1, true)
	a.write("ca", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name+".pem") }

func (a *authority) write(name, kind string, der []byte) {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(a.file(name), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) make(serial int64, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IsCA: ca, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, by := about, key
	if !ca {
		parent, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, about, parent, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// renew writes a certificate of a serial number, in place of the last.
func (a *authority) renew(serial int64) {
	a.t.Helper()
	cert, key := a.make(serial, false)
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write("cert", "CERTIFICATE", cert.Raw)
	a.write("key", "EC PRIVATE KEY", private)
}

// shown is the serial number of the certificate that is shown at an address; 0 while none is.
func (a *authority) shown(addr string) int64 {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots})
	if err != nil {
		return 0
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// A certificate that is renewed is shown without a restart, to clients and to nodes that join, which need no secret.
func TestCertificateThatIsRenewed(t *testing.T) {
	a := newAuthority(t)
	a.renew(2)
	f := newFleet(t, 0)
	first := f.next().options()
	first.SecretFile = ""
	first.TLSCert, first.TLSKey, first.NodeCA = a.file("cert"), a.file("key"), a.file("ca")
	first.ClusterCert, first.ClusterKey, first.ClusterCA = a.file("cert"), a.file("key"), a.file("ca")
	start := func(o Options) (listen, admin, cluster string) {
		started := make(chan [3]net.Addr, 1)
		o.Started = func(listen, admin, cluster net.Addr) { started <- [3]net.Addr{listen, admin, cluster} }
		o.Log = slog.New(slog.NewTextHandler(testkit.LogOf(t, "a node"), nil))
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, o) }()
		t.Cleanup(func() {
			stop()
			if err := testkit.Receive(t, "a node ends", ended); err != nil {
				t.Error(err)
			}
		})
		at := testkit.Receive(t, "a node listens", started)
		return at[0].String(), at[1].String(), at[2].String()
	}
	listen, admin, cluster := start(first)
	if got := a.shown(listen); got != 2 {
		t.Fatalf("certificate %d is shown", got)
	}
	a.renew(3)
	testkit.Eventually(t, "the next one is shown", func() bool { return a.shown(listen) == 3 })
	second := first
	second.Join = []string{cluster}
	start(second)
	testkit.Eventually(t, "another node has come", func() bool {
		return strings.Contains(get(t, admin, "/metrics"), "pagewire_node_nodes 2\n")
	})
}
