package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// saslHandshake and saslAuthenticate answer who begins to authenticate on a
// listener without SASL, as Apache Kafka does: the connection stays open, so that
// the client can say what is wrong with its settings. Every listener is one so far.
func saslHandshake(c *call, req *kmsg.SASLHandshakeRequest) {
	response := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
	response.ErrorCode = int16(protocol.IllegalSaslState)
	response.SupportedMechanisms = []string{}
	c.reply(response)
}

func saslAuthenticate(c *call, req *kmsg.SASLAuthenticateRequest) {
	response := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	response.ErrorCode = int16(protocol.IllegalSaslState)
	response.ErrorMessage = kmsg.StringPtr("SaslAuthenticate request received after successful authentication")
	response.SASLAuthBytes = []byte{}
	c.reply(response)
}
