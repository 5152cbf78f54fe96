"""The server that NeMo Gym starts for `configs/tokengym.yaml`."""

from tokengym.agents.adapters.nemo_gym import WorldServer

if __name__ == "__main__":
    WorldServer.run_webserver()
