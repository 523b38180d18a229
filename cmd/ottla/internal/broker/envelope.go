package broker

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/wire"
)

// Sender is the client for whom a request is forwarded.
type Sender struct {
	Principal string // as "User:alice"
	Host      string // its address
	ClientID  string
}

// Enveloped gives a send that forwards requests of a client to the controller in an
// Envelope, which says whose they are (KIP-590).
func Enveloped(sender Sender, send Send) Send {
	return func(req kmsg.Request, done func(kmsg.Response, error)) {
		envelope := kmsg.NewPtrEnvelopeRequest()
		frame := wire.AppendRequest(nil, wire.RequestHeader{ClientID: &sender.ClientID}, req)
		envelope.RequestData = frame[wire.LengthBytes:]
		envelope.RequestPrincipal = principalBytes(sender.Principal)
		envelope.ClientHostAddress = addressBytes(sender.Host)
		send(envelope, func(resp kmsg.Response, err error) {
			if err != nil {
				done(nil, err)
				return
			}
			done(unfold(req, resp))
		})
	}
}

// unfold takes the answer out of its envelope.
func unfold(req kmsg.Request, resp kmsg.Response) (kmsg.Response, error) {
	envelope, ok := resp.(*kmsg.EnvelopeResponse)
	if !ok {
		return nil, fmt.Errorf("a response of kind %T to an Envelope", resp)
	}
	switch code := protocol.ErrorCode(envelope.ErrorCode); code {
	case protocol.None:
	case protocol.UnsupportedVersion:
		return nil, code.Err()
	default: // as Kafka: what goes wrong between the nodes is no client's fault
		return nil, protocol.Errorf(protocol.UnknownServerError, "the controller refused the envelope with %s", code)
	}
	_, inner, err := wire.ReadResponse(envelope.ResponseData, req)
	if err != nil {
		return nil, fmt.Errorf("the answer in an Envelope: %w", err)
	}
	return inner, nil
}

// principalBytes is DefaultPrincipalData, version 0, behind its version
// (DefaultKafkaPrincipalBuilder.serialize).
func principalBytes(principal string) []byte {
	data := kmsg.NewDefaultPrincipalData()
	data.Type, data.Name, _ = strings.Cut(principal, ":")
	return data.AppendTo(nil)
}

// addressBytes gives the 4 or 16 bytes of an address, as InetAddress has them. What
// is none, as where a connection has no network below it, becomes the loopback's.
func addressBytes(host string) []byte {
	at, err := netip.ParseAddr(host)
	if err != nil {
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return at.Unmap().WithZone("").AsSlice()
}
