package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// Item 37.
func TestSASLOnAListenerWithoutIt(t *testing.T) {
	f := newTestCluster(t, nil)
	f.join(1)
	for version := range int16(2) {
		req := kmsg.NewPtrSASLHandshakeRequest()
		req.Version, req.Mechanism = version, "PLAIN"
		if got := ask[*kmsg.SASLHandshakeResponse](f, req); protocol.ErrorCode(got.ErrorCode) != protocol.IllegalSaslState || len(got.SupportedMechanisms) != 0 {
			t.Errorf("handshake %d: %+v", version, got)
		}
	}
	for version := range int16(3) {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.Version = version
		if got := ask[*kmsg.SASLAuthenticateResponse](f, req); protocol.ErrorCode(got.ErrorCode) != protocol.IllegalSaslState {
			t.Errorf("authenticate %d: %+v", version, got)
		}
	}
}
