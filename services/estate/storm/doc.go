// Package storm holds the storms: many clients that are slow, idle or hostile at the
// same time, against the real gateway between real sockets. What is held to: nothing
// that they leave behind stays in the gateway, its memory is bounded while they last,
// and whatever arrives arrives unharmed.
//
// The tests run a small form of each. `make soak` runs them for as long as it is
// told, with every engine of the gateway. There is no code here but tests; they look
// at the gateway's process from outside, as Linux shows it.
package storm
