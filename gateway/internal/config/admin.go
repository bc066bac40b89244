package config

// AdminAddress returns the address of the admin port as far as the settings can
// be read, for a health check: it must not fail, and have a healthy gateway
// restarted, because somebody is just writing the file of the next start.
func AdminAddress(args, environ []string) string {
	flags, err := parseFlags(args)
	if err != nil {
		return Default().Admin
	}
	return read(flags, parseEnviron(environ)).config.Admin
}
