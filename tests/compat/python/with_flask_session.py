"""Flask-Session: sessions on the server's side."""

import flask
import flask_session

from scenario import client, equal, main


def session(place):
    """A session lives across requests, is one visitor's, expires, and ends."""
    app = flask.Flask(__name__)
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=client(place))
    flask_session.Session(app)

    @app.route("/visit")
    def visit():
        flask.session["visits"] = flask.session.get("visits", 0) + 1
        return str(flask.session["visits"])

    @app.route("/leave")
    def leave():
        flask.session.clear()
        return "left"

    ada, grace = app.test_client(), app.test_client()
    equal([ada.get("/visit").text for _ in range(3)], ["1", "2", "3"])
    equal(grace.get("/visit").text, "1")
    db = client(place)
    keys = db.keys("session:*")
    equal(len(keys), 2)
    assert all(db.ttl(key) > 3600 for key in keys)
    ada.get("/leave")
    equal(ada.get("/visit").text, "1")
    equal(grace.get("/visit").text, "2")


main(globals())
