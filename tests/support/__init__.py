"""What tests of several folders share: small clusters, servers on loopback that answer as recorded ones did, recorded answers."""
