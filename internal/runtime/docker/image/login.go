package image

import (
	"cmp"
	"errors"
	"io/fs"
	"os/exec"

	"github.com/cpuguy83/dockercfg"
	"github.com/docker/docker/api/types/registry"
)

// loginFor reads the user's docker configuration, with its credential helpers. header is the login as engines take it.
// Both are empty without credentials.
func loginFor(host string) (user, header string, err error) {
	host = dockercfg.ResolveRegistryHost(host)
	user, secret, err := dockercfg.GetRegistryCredentials(host)
	if err != nil || secret == "" {
		return "", "", cmp.Or(err, missingHelper(host))
	}
	auth := registry.AuthConfig{ServerAddress: host, Username: user, Password: secret}
	if user == "" {
		auth = registry.AuthConfig{ServerAddress: host, IdentityToken: secret}
		user = "an identity token"
	}
	header, err = registry.EncodeAuthConfig(auth)
	return user, header, err
}

// missingHelper is the error of a credential helper that the user's configuration names and that is not installed.
func missingHelper(host string) error {
	config, err := dockercfg.LoadDefaultConfig()
	if err != nil {
		return nil // the user has no configuration
	}
	helper := cmp.Or(config.CredentialHelpers[host], config.CredentialsStore)
	if helper == "" {
		return nil
	}
	_, err = exec.LookPath("docker-credential-" + helper)
	return err
}

// proxies are the build arguments with the user's proxy, for programs in a build. The docker command passes them by
// itself, the engine's API does not.
func proxies(engineHost string) (map[string]*string, error) {
	args := map[string]*string{}
	config, err := dockercfg.LoadDefaultConfig()
	if errors.Is(err, fs.ErrNotExist) {
		return args, nil
	}
	if err != nil {
		return args, err
	}
	proxy, ok := config.Proxies[engineHost]
	if !ok {
		proxy = config.Proxies["default"]
	}
	for name, value := range map[string]string{
		"http_proxy": proxy.HTTPProxy, "https_proxy": proxy.HTTPSProxy, "ftp_proxy": proxy.FTPProxy, "no_proxy": proxy.NoProxy,
	} {
		if value != "" {
			args[name] = &value
		}
	}
	return args, nil
}
