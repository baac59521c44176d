"""Experiments on runs of allranks: does a workspace give the processes of a job what the local engine gives them?"""
