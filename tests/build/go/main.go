// Drives a running service through the whole path with the client that openapi-generator generates.
// Arguments: the address of the service, the file of examples, the file of a raw message.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"covey"
)

const model = "by-go"

var ctx = context.Background()

func check(err error) {
	if err == nil {
		return
	}
	var failure *covey.GenericOpenAPIError
	if errors.As(err, &failure) {
		err = fmt.Errorf("%w: %s", err, failure.Body())
	}
	panic(err)
}

func expect(holds bool, format string, values ...any) {
	if !holds {
		panic(fmt.Sprintf(format, values...))
	}
}

func expectProblem(err error, status int64, code string) covey.Problem {
	var failure *covey.GenericOpenAPIError
	expect(errors.As(err, &failure), "no problem, but %d was expected: %v", status, err)
	problem, ok := failure.Model().(covey.Problem)
	expect(ok, "not a problem: %s", failure.Body())
	expect(problem.Status == status && problem.Code == code, "%d %s", problem.Status, problem.Code)
	return problem
}

func open(path string) *os.File {
	file, err := os.Open(path)
	check(err)
	return file
}

func training(dataset string, rounds int32) covey.TrainingJobCreate {
	learner := covey.NewMPBoostParameters("mp_boost")
	learner.SetRounds(rounds)
	request := covey.NewTrainingJobCreate(model, dataset, covey.MPBoostParametersAsLearnerConfig(learner))
	selection := covey.NewInformationGain("information_gain")
	selection.SetPerLabel(20)
	features := covey.NewTextFeaturesParameters("text")
	features.SetSelection(covey.InformationGainAsSelectionParameters(selection))
	request.SetFeatures(covey.TextFeaturesParametersAsFeaturesConfig(features))
	request.SetDecision(covey.AtLeastOneDecisionAsDecisionRule(covey.NewAtLeastOneDecision("at_least_one")))
	never := covey.PROMOTIONRULE_NEVER
	request.SetPromote(covey.TrainingJobCreatePromote{PromotionRule: &never})
	return *request
}

func upload(client *covey.APIClient, examples string) string {
	created, _, err := client.DatasetsAPI.DatasetsCreate(ctx).DatasetCreate(*covey.NewDatasetCreate(model)).Execute()
	check(err)
	_, _, err = client.TrainingJobsAPI.TrainingJobsCreate(ctx).TrainingJobCreate(training(created.Id, 8)).Execute()
	expectProblem(err, 409, "dataset_not_ready")
	_, _, err = client.DatasetsAPI.DatasetsUploadContent(ctx, created.Id).Body(open(examples)).Execute()
	check(err)
	for {
		dataset, _, err := client.DatasetsAPI.DatasetsGet(ctx, created.Id).Execute()
		check(err)
		if dataset.State != covey.DATASETSTATE_INGESTING {
			expect(dataset.State == covey.DATASETSTATE_READY, "the data set is %s", dataset.State)
			expect(dataset.GetNExamples() == 80, "%d examples", dataset.GetNExamples())
			return created.Id
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// follow reads the pages of events until the training ends, and returns the types of the events.
func follow(client *covey.APIClient, job string) []string {
	types := []string{}
	cursor := ""
	for {
		request := client.TrainingJobsAPI.TrainingJobsListEvents(ctx, job)
		if cursor != "" {
			request = request.Cursor(cursor)
		}
		page, _, err := request.Execute()
		check(err)
		if page.NextCursor != nil {
			cursor = *page.NextCursor
			for _, event := range page.Items {
				types = append(types, event.Type)
			}
			continue
		}
		if n := len(page.Items); n > 0 {
			last := page.Items[n-1].Type
			if last == "succeeded" || last == "failed" || last == "cancelled" {
				for _, event := range page.Items {
					types = append(types, event.Type)
				}
				return types
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func train(client *covey.APIClient, dataset string) int32 {
	_, _, err := client.TrainingJobsAPI.TrainingJobsCreate(ctx).TrainingJobCreate(training(dataset, 0)).Execute()
	problem := expectProblem(err, 422, "invalid_request")
	expect(problem.Errors[0].GetPointer() == "/learner/rounds", "%v", problem.Errors)
	job, _, err := client.TrainingJobsAPI.TrainingJobsCreate(ctx).
		TrainingJobCreate(training(dataset, 8)).IdempotencyKey(model).Execute()
	check(err)
	types := follow(client, job.Id)
	expect(types[0] == "queued" && types[len(types)-1] == "succeeded", "%v", types)
	ended, _, err := client.TrainingJobsAPI.TrainingJobsGet(ctx, job.Id).Execute()
	check(err)
	expect(ended.State == covey.JOBSTATE_SUCCEEDED, "the training %s", ended.State)
	return int32(ended.Result.Version)
}

func promote(client *covey.APIClient, version int32) {
	put := func(revision string) (*http.Response, error) {
		request := client.ModelsAPI.ModelsPutAlias(ctx, model, "live").AliasPut(*covey.NewAliasPut(version))
		if revision != "" {
			request = request.IfMatch(revision)
		}
		alias, response, err := request.Execute()
		expect(err != nil || int32(alias.Version) == version, "another version")
		return response, err
	}
	response, err := put("")
	check(err)
	_, err = put(`"stale"`)
	expectProblem(err, 412, "precondition_failed")
	_, err = put(response.Header.Get("ETag"))
	check(err)
}

func route(client *covey.APIClient, message string) {
	router := covey.NewRouterPut(model, "front@example.org")
	router.SetDestinations(map[string]string{"shipping": "ship@example.org"})
	_, _, err := client.RoutersAPI.RoutersPut(ctx, model).RouterPut(*router).Execute()
	check(err)
	decision, _, err := client.RoutersAPI.RoutersRouteMessage(ctx, model).Body(open(message)).Execute()
	check(err)
	expect(decision.Disposition == covey.DISPOSITION_ROUTED, "%s", decision.Disposition)
	expect(decision.Destinations[0] == "ship@example.org", "%v", decision.Destinations)
	expect(decision.Message.GetSubject() == "Late parcel", "%s", decision.Message.GetSubject())
	_, _, err = client.DecisionsAPI.DecisionsGiveFeedback(ctx, decision.DecisionId).
		Feedback(*covey.NewFeedback([]string{"billing"})).Execute()
	check(err)
	corrected, _, err := client.DecisionsAPI.DecisionsGet(ctx, decision.DecisionId).Execute()
	check(err)
	expect(len(corrected.Feedback) == 1 && corrected.Feedback[0] == "billing", "%v", corrected.Feedback)
}

func main() {
	configuration := covey.NewConfiguration()
	configuration.Servers = covey.ServerConfigurations{{URL: os.Args[1]}}
	client := covey.NewAPIClient(configuration)
	_, _, err := client.DatasetsAPI.DatasetsGet(ctx, "ds_nope").Execute()
	expectProblem(err, 404, "not_found")
	dataset := upload(client, os.Args[2])
	promote(client, train(client, dataset))
	route(client, os.Args[3])
	_, err = client.RoutersAPI.RoutersDelete(ctx, model).Execute()
	check(err)
	_, err = client.ModelsAPI.ModelsDelete(ctx, model).Execute()
	check(err)
	_, err = client.DatasetsAPI.DatasetsDelete(ctx, dataset).Execute()
	check(err)
	fmt.Println("the whole path works")
}
