// Package e2e holds the end-to-end tests: they start the programs as real
// processes, talk to them over real sockets, and know nothing of their insides.
// What a test demands is what the README, docs/openapi.yaml and docs/operations.md
// promise to a user. There is no code here but tests.
package e2e
